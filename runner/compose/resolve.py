"""Stages 2 and 3: a composed config with smoke overrides applied, expanded and validated.

No component is built and torch is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from components.registry import CHOSEN, REQUIRED, ROLES
from runner.catalogue.plugins import import_plugins
from runner.catalogue.settings import UNSIGNED_KEYS, Settings, Values, sign
from runner.catalogue.words import parse_overrides
from runner.compose.compose import Composed, compose_in_full, restore_hydra_on_exit, without_hydra
from runner.compose.expand import expand, explain_misplaced
from runner.compose.validate import check_draws, validate
from runner.disk import conf_folders
from runner.disk.read_yaml import value_at
from runner.errors import ConfigError, first_line


@dataclass(frozen=True, kw_only=True)
class ResolvedConfig:
    """A valid config with all keys, before its components are built.

    It has an identity and a folder once its data are named.
    """

    config: Values  # with smoke overrides and all nested components, as recorded
    settings: Settings  # its run-level keys
    notes: list[str]  # notes for the user on how the config was interpreted
    explicit: frozenset[str]  # keys set on the command line
    # keys of each role as composed, before keys unknown to its component were left out
    given: dict[str, Values]
    data: str = ""  # name of the data ("sarcos-sim" is never "sarcos"); empty if not named yet

    @property
    def choice(self) -> dict[str, str | None]:
        """Name of the component of each role."""
        return {role: (self.config.get(role) or {}).get("name") for role in CHOSEN}

    @property
    def overrides(self) -> list[str]:
        """Resolved command-line settings that can change a result; they name the run."""
        settings = []
        for key in sorted(self.explicit):
            value = value_at(self.config, key)
            if value is not None and key.split(".")[0] not in UNSIGNED_KEYS:
                is_component = isinstance(value, dict) and "name" in value
                text = json.dumps(value["name"] if is_component else value, ensure_ascii=False)
                settings.append(f"{key}=" + text.strip('"'))
        return settings

    @property
    def budget(self) -> dict[str, float]:
        """Cost limits of a replicate, by kind."""
        limits = self.settings.budget or {}
        return {kind: limit for kind, limit in limits.items() if limit is not None}

    @cached_property
    def signature(self) -> str:
        """Hash of the signed config and of the name of the data."""
        return sign(self.config, self.data)

    @property
    def folder(self) -> Path:
        return Path(self.settings.output_dir) / self.settings.experiment / self.signature

    def identify(self, data: str) -> ResolvedConfig:
        """The config with the name of its data and all its notes.

        Raises:
            ConfigError: no draws would be kept.
        """
        notes = [*self.notes, *check_draws(self.config["inference"], self.settings)]
        return replace(self, notes=notes, data=data)


def resolve(composed: Composed) -> ResolvedConfig:
    """Expand a composed config and validate its run-level keys.

    Raises:
        ConfigError: an error detectable without building a component, in one to three lines.
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
    _refuse_misplaced(config, explicit)
    given = {role: dict(config[role]) for role in CHOSEN if isinstance(config.get(role), dict)}
    config, notes = expand(config, explicit, is_smoke)
    return ResolvedConfig(
        config=config, settings=validate(config), notes=notes, explicit=explicit, given=given
    )


def resolve_words(words: list[str], once: str) -> ResolvedConfig:
    """Compose, expand and validate the config of ``words``: overrides and ``--config-dir``.

    Args:
        words: as on the command line of one run.
        once: advice for an override with several values, such as "call run once for each".

    Raises:
        ConfigError: an error detectable without building a component.
    """
    argv = conf_folders.use_given(words)
    if swept := [o.input_line for o in parse_overrides(argv) if o.is_sweep_override()]:
        raise ConfigError(f"{swept[0]}: several values need a sweep; {once}")
    with restore_hydra_on_exit():
        cfg = compose_in_full(argv)
        HydraConfig.instance().set_config(cfg)  # for ${hydra:…} in a user's config
        return resolve(without_hydra(cfg))


def to_container(cfg: DictConfig) -> Values:
    try:
        config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key}: required; set {error.full_key}=…") from None
    except OmegaConfBaseException as error:
        first = first_line(error)
        reason = first.rpartition("raised while resolving interpolation: ")[2]
        raise ConfigError(f"{error.full_key or 'config'}: {reason}") from None
    assert isinstance(config, dict)
    return config


def _refuse_misplaced(config: Values, explicit: Collection[str]) -> None:
    """Refuse a run without a required component, and components that are chosen by ``role.name`` or
    at the wrong level.

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
            f"{', '.join(missing)}: missing; choose an experiment, such as +experiment=sarcos_mdgp (runner list experiment "
            f"shows all), or set {' '.join(f'{role}=…' for role in missing)}"
        )


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
