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
    known_keys,
    parse_keys,
    parse_number,
)
from runner.catalogue.plugins import import_plugins
from runner.catalogue.settings import UNSIGNED_KEYS, Values
from runner.catalogue.words import explain_misplaced
from runner.compose.compose import Composed
from runner.compose.trust import note_checksums, refuse_foreign, refuse_untrusted
from runner.disk import conf_folders
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
    keys = frozenset(composed.explicit or ())
    config = to_container(composed.cfg)
    refuse_foreign(composed.cfg, set())
    config.pop("hydra", None)
    config["experiment"] = composed.experiment or "custom"
    if isinstance(config.get("plugins"), list):
        import_plugins(config["plugins"])
    is_smoke = composed.explicit is not None and config.get("smoke") is True
    if is_smoke:
        config = apply_smoke_overrides(config, keys)
    config = parse_keys(config, read_index()[CONFIG], "")
    if isinstance(config.get("budget"), dict):
        config["budget"] = parse_number(config["budget"], "budget", is_integer=True)
    _refuse_misplaced(config, keys)
    notes: list[str] = []
    given = {role: dict(config[role]) for role in CHOSEN if isinstance(config.get(role), dict)}
    for role, values in _chosen_components(config):
        config[role] = _drop_foreign_keys(role, values, keys, notes)
    _refuse_missing(config)
    config = fill_in(config, keys if is_smoke else None)
    return ExpandedConfig(
        config=config,
        notes=notes,
        overrides=_signed_settings(config, keys),
        explicit=keys,
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
    """Refuse components that are chosen by ``role.name`` or at the wrong level.

    Raises:
        ConfigError: a component is misplaced; the message gives the correct override.
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


def _refuse_missing(config: Values) -> None:
    """Refuse a run without a required component.

    Raises:
        ConfigError: roles are missing.
    """
    missing = [role for role in REQUIRED if config.get(role) is None]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: missing; choose an experiment, as +experiment=sarcos_mdgp (runner list experiment "
            f"shows all), or set {' '.join(f'{role}=…' for role in missing)}"
        )


def _drop_foreign_keys(
    role: str, values: Values, explicit: Collection[str], notes: list[str]
) -> Values:
    """Drop keys that the experiment sets for its own component if the user chose another component
    without such keys; a note lists them."""
    if role in explicit:
        keys = known_keys(role, values, role).keys
        foreign = [k for k in values if k not in keys and f"{role}.{k}" not in explicit]
        refuse_unknown_defaults(role, str(values["name"]), foreign, keys)
        if foreign:
            notes.append(
                f"{role}={values['name']}: ignoring {', '.join(foreign)} of the experiment, which it does not have"
            )
        return {k: v for k, v in values.items() if k not in foreign}
    return values


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
        value: Any = config
        for word in name.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if value is not None and name.split(".")[0] not in UNSIGNED_KEYS:
            is_component = isinstance(value, dict) and "name" in value
            text = (
                value["name"] if is_component else json.dumps(value, ensure_ascii=False).strip('"')
            )
            settings.append(f"{name}={text}")
    return settings


def _chosen_components(config: Values) -> list[tuple[str, Any]]:
    """Mapping of the chosen component of each role."""
    return [(role, config[role]) for role in CHOSEN if config.get(role) is not None]


def fill_in(config: Values, smoke_keys: Collection[str] | None) -> Values:
    """Complete the components of a config, with the checksums of the files that they name.

    Args:
        config: the config; the mappings of its components may lack keys of nested components.
        smoke_keys: keys set by the user, for the config of a smoke run.

    Raises:
        ConfigError: a component does not exist, or names code or a file that is refused.
    """
    config = config | {
        role: expand_component(role, mapping, role) for role, mapping in _chosen_components(config)
    }
    if smoke_keys is not None:
        config = _shorten_for_smoke(config, smoke_keys)
    config = json.loads(json.dumps(config))
    for role, values in _chosen_components(config):
        refuse_untrusted(role, values, config["plugins"])
        note_checksums(role, values)
    return config


def apply_smoke_overrides(config: Values, explicit: Collection[str]) -> Values:
    """Merge ``smoke_overrides`` into the config, except for keys set on the command line."""

    def merge(base: Values, over: Values, path: str) -> Values:
        out = dict(base)
        for key, value in over.items():
            dotted = f"{path}.{key}" if path else key
            is_mapping = isinstance(value, dict)
            # model=smdgp chooses a model, not its keys
            if dotted in explicit and not is_mapping:
                continue
            is_left_out = dotted in CHOSEN and base.get(key) is None
            if is_left_out and is_mapping and "name" not in value:
                continue
            is_merged = is_mapping and isinstance(out.get(key), dict)
            out[key] = merge(out[key], value, dotted) if is_merged else value
        return out

    return merge(config, config.get("smoke_overrides") or {}, "")


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
