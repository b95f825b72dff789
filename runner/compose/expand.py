"""Stage 2, expand: complete a composed config with every key of every component.

Numbers are parsed, smoke overrides applied, and nested components filled in, so that a record and a
signature describe the whole run.  No component is built and torch is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from components.contracts.requirements import CHAINS, LEFT_OUT, THINNING
from components.registry import CHOSEN, REQUIRED, ROLES
from runner.catalogue.declarations import CONFIG, read_index
from runner.catalogue.parts import (
    component_defaults,
    expand_component,
    explain_misplaced,
    known_keys,
    parse_keys,
    parse_number,
)
from runner.catalogue.plugins import import_plugins
from runner.catalogue.settings import UNSIGNED_KEYS, Values
from runner.compose.compose import Composed
from runner.disk import conf_folders
from runner.disk.read_yaml import value_at
from runner.errors import ConfigError, display_path, nearest

FEWEST = 4  # smallest number of draws per chain for ESS and R̂


@dataclass(frozen=True, kw_only=True)
class ExpandedConfig:
    """A composed config with all keys."""

    config: Values  # with smoke overrides and all nested components, as recorded
    notes: list[str]  # notes for the user on how the config was interpreted
    overrides: list[str]  # ``key=value`` as requested, the name of the run
    explicit: frozenset[str]  # keys set on the command line
    # keys of each role as composed, before keys unknown to its component were left out
    given: dict[str, Values]

    @property
    def choice(self) -> dict[str, str | None]:
        """Name of the component of each role."""
        return {role: (self.config.get(role) or {}).get("name") for role in CHOSEN}


def expand(composed: Composed) -> ExpandedConfig:
    """Expand a composed config.

    Raises:
        ConfigError: a component is missing, misplaced or does not exist, or the config names
            code or a file that is refused.
    """
    explicit = frozenset(composed.explicit or ())
    config = to_container(composed.cfg)
    config["experiment"] = composed.experiment or "custom"
    if isinstance(config.get("plugins"), list):
        import_plugins(config["plugins"])
    is_smoke = composed.explicit is not None and config.get("smoke") is True
    if is_smoke:
        overrides = config.get("smoke_overrides") or {}
        config = merge_smoke_overrides(config, overrides, explicit)
    config = parse_keys(config, read_index()[CONFIG], "")
    if isinstance(config.get("budget"), dict):
        config["budget"] = parse_number(config["budget"], "budget", is_integer=True)
    _refuse_misplaced(config, explicit)
    given = {role: dict(config[role]) for role in CHOSEN if isinstance(config.get(role), dict)}
    notes: list[str] = []
    for role in CHOSEN:
        if role in explicit and config.get(role) is not None:
            config[role] = _drop_foreign_keys(role, config[role], explicit, notes)
    config = fill_in(config, explicit if is_smoke else None)
    return ExpandedConfig(
        config=config,
        notes=notes,
        overrides=_signed_settings(config, explicit),
        explicit=explicit,
        given=given,
    )


def to_container(cfg: DictConfig) -> Values:
    try:
        config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        parts = str(error).splitlines()[0].partition("raised while resolving interpolation: ")
        raise ConfigError(f"{error.full_key or 'config'}: {parts[2] or parts[0]}") from None
    assert isinstance(config, dict)
    return config


def _refuse_misplaced(config: Values, explicit: Collection[str]) -> None:
    """Refuse a run without a required component, and components that are chosen by ``role.name`` or at
    the wrong level.

    Raises:
        ConfigError: a component is missing or misplaced; the message gives the correct override.
    """
    for role in CHOSEN:
        if f"{role}.name" in explicit and isinstance(config.get(role), dict):
            name = config[role].get("name")
            raise ConfigError(
                f"{role}.name={name}: changes the name without the other keys; write {role}={name}"
            )
    for role in ROLES:
        if role in config and role not in CHOSEN:
            raise ConfigError(explain_misplaced(role, config[role]))
    missing = [role for role in REQUIRED if config.get(role) is None]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: missing; choose an experiment, as +experiment=sarcos_mdgp (runner list experiment "
            f"shows all), or set {' '.join(f'{role}=…' for role in missing)}"
        )


def _drop_foreign_keys(
    role: str, values: Values, explicit: Collection[str], notes: list[str]
) -> Values:
    """Drop keys that the experiment sets for its own component, for a component chosen by the user
    without such keys; a note lists them."""
    keys = known_keys(role, values, role).keys
    foreign = [k for k in values if k not in keys and f"{role}.{k}" not in explicit]
    refuse_unknown_defaults(role, str(values["name"]), foreign, keys)
    if foreign:
        notes.append(
            f"{role}={values['name']}: ignoring {', '.join(foreign)} of the experiment, which it does not have"
        )
    return {k: v for k, v in values.items() if k not in foreign}


def refuse_unknown_defaults(
    role: str, name: str, foreign: list[str], keys: Collection[str]
) -> None:
    """Refuse keys in a component's YAML that its class does not have.

    Raises:
        ConfigError: a key is unknown; the message gives the file.
    """
    file = conf_folders.find(role, name)
    defaults = component_defaults(role, name)
    for key in foreign:
        if key in defaults and file is not None:
            raise ConfigError(
                f"{display_path(file)}: {key}: unknown key of {role}={name}{nearest(key, keys)}"
            )


def _signed_settings(config: Values, explicit: Collection[str]) -> list[str]:
    """Resolved command-line settings that can change a result."""
    settings = []
    for name in sorted(explicit):
        value = value_at(config, name)
        if value is not None and name.split(".")[0] not in UNSIGNED_KEYS:
            is_component = isinstance(value, dict) and "name" in value
            text = (
                value["name"] if is_component else json.dumps(value, ensure_ascii=False).strip('"')
            )
            settings.append(f"{name}={text}")
    return settings


def fill_in(config: Values, smoke_keys: Collection[str] | None) -> Values:
    """Complete the components of a config, with the checksums of the files that they name.

    Args:
        config: the config; the mappings of its components may lack keys of nested components.
        smoke_keys: keys set by the user, for the config of a smoke run.

    Raises:
        ConfigError: a component does not exist, or names code or a file that is refused.
    """
    config = config | {
        role: expand_component(role, config[role], role, config["plugins"])
        for role in CHOSEN
        if config.get(role) is not None
    }
    if smoke_keys is not None:
        config = _shorten_for_smoke(config, smoke_keys)
    normalised: Values = json.loads(json.dumps(config))
    return normalised


def merge_smoke_overrides(
    base: Values, overrides: Values, explicit: Collection[str], path: str = ""
) -> Values:
    """Merge ``smoke_overrides`` into a config, except for keys set on the command line.

    Args:
        base: the config, or the mapping of a key in it.
        overrides: overrides of its keys.
        explicit: keys set on the command line.
        path: prefix of its keys.
    """
    merged = dict(base)
    for key, value in overrides.items():
        is_mapping = isinstance(value, dict)
        # model=smdgp chooses a model, not its keys
        if f"{path}{key}" in explicit and not is_mapping:
            continue
        is_left_out = f"{path}{key}" in CHOSEN and base.get(key) is None
        if is_left_out and is_mapping and "name" not in value:
            continue
        if is_mapping and isinstance(base.get(key), dict):
            value = merge_smoke_overrides(base[key], value, explicit, f"{path}{key}.")
        merged[key] = value
    return merged


def _shorten_for_smoke(config: Values, explicit: Collection[str]) -> Values:
    """Limit burn-in and thinning of a smoke run: at least half of its steps remain, and four draws.

    The smoke overrides of an experiment fit its own sampler; this covers a sampler chosen by the
    user."""
    inference = dict(config.get("inference") or {})
    key = burn_in_key(inference)
    steps = config["steps"]
    if key is None or not isinstance(inference[key], int) or not isinstance(steps, int):
        return config
    if f"inference.{key}" not in explicit and inference[key] >= steps:
        inference[key] = steps // 2
    n_kept = max(1, (steps - inference[key]) // FEWEST)
    if f"inference.{THINNING}" not in explicit and isinstance(inference.get(THINNING), int):
        inference[THINNING] = min(inference[THINNING], n_kept)
    return config | {"inference": inference}


def burn_in_key(keys: Mapping[str, Any]) -> str | None:
    """Key of the burn-in, the number of initial steps without kept draws, or None.

    The key ``warmup`` of a method without chains is a KL warm-up and does not count.
    """
    return next(
        (key for key in LEFT_OUT if key in keys and (key != "warmup" or CHAINS in keys)), None
    )
