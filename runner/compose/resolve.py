"""Resolution of a composed config.

Smoke overrides are applied, parts are filled in and run-level keys are checked.

No component is built here and torch is not imported, so that a run that is done can be
reported immediately.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from components.registry import CHOSEN, REQUIRED, ROLES
from runner.catalogue.declarations import CONFIG, read_index
from runner.catalogue.plugins import import_plugins
from runner.compose.full_config import chosen_components, fill_in
from runner.compose.hydra.guard import refuse_foreign
from runner.compose.numbers import parse_integer, parse_keys
from runner.compose.parts import component_defaults, known_keys
from runner.compose.settings import GEOMETRIC, UNSIGNED_KEYS, BudgetKeys, Settings, Values
from runner.compose.smoke import apply_smoke_overrides
from runner.compose.validation import validate_model
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.errors import ConfigError, display_path, nearest


@dataclass(frozen=True, kw_only=True)
class ResolvedConfig:
    """A config in full, before its components are built.

    With named data it has an identity, and a folder for its record.
    """

    settings: Settings
    config: Values  # with smoke overrides applied and parts in full, as recorded
    notes: list[str]  # notes for the user on how the config was read
    overrides: list[str]  # ``key=value`` as requested: the names of runs
    explicit: frozenset[str]  # keys set on the command line
    # keys of each role as composed, before keys unknown to its component were left out
    given: dict[str, Values]
    data: str = ""  # the data's own name ("sarcos-sim" is never "sarcos"); empty: not named yet
    signature: str = ""

    @property
    def budget(self) -> dict[str, float]:
        """Limits of the costs of a replicate, by kind."""
        limits = self.settings.budget or {}
        return {kind: limit for kind, limit in limits.items() if limit is not None}

    @property
    def choice(self) -> dict[str, str | None]:
        """The name of the component of each role."""
        return {role: (self.config.get(role) or {}).get("name") for role in CHOSEN}

    @property
    def folder(self) -> Path:
        return Path(self.settings.output_dir) / self.settings.experiment / self.signature


def _normalise_numbers(config: Values) -> Values:
    """The config with run-level ratios such as ``8/255`` as numbers, and integers as such.

    Raises:
        ConfigError: a ratio is divided by zero.
    """
    result = parse_keys(config, read_index()[CONFIG], "")
    if isinstance(config.get("budget"), dict):
        result["budget"] = {kind: parse_integer(n) for kind, n in config["budget"].items()}
    return result


def _drop_foreign_keys(role: str, values: Values, explicit: set[str], notes: list[str]) -> Values:
    """A role's mapping without unknown keys that the experiment has set for its own component, if
    the user chose another; a note names them."""
    if role in explicit:
        keys = known_keys(role, values, role).keys
        foreign = [k for k in values if k not in keys and f"{role}.{k}" not in explicit]
        refuse_unknown_defaults(role, str(values["name"]), foreign, keys)
        if foreign:
            notes.append(
                f"{role}={values['name']} has no {', '.join(foreign)}: the experiment's own values are left out"
            )
        return {k: v for k, v in values.items() if k not in foreign}
    return values


def refuse_unknown_defaults(
    role: str, name: str, foreign: list[str], keys: Collection[str]
) -> None:
    """Refuses keys that a component's own YAML has and its class lacks.

    Raises:
        ConfigError: there is one; with the file.
    """
    file = conf_folders.find(role, name)
    defaults = component_defaults(role, name)
    for key in foreign:
        if key in defaults and file is not None:
            raise ConfigError(
                f"{display_path(file)}: {key}: unknown key of {role}={name}{nearest(key, keys)}"
            )


def resolve(
    cfg: DictConfig, experiment: str | None = None, explicit: set[str] | None = None
) -> ResolvedConfig:
    """Resolve a composed config in full.

    ``experiment`` is the name of the experiment chosen (None: composed by hand);
    ``explicit`` the keys set on the command line, which smoke overrides leave unchanged
    (None: they have been applied already, as in a record's config).

    Raises:
        ConfigError: any error detectable without building a component, in one to three
            lines.
    """
    keys = set(explicit or ())
    config = to_container(cfg)
    refuse_foreign(cfg, set())
    config.pop("hydra", None)
    config["experiment"] = experiment or "custom"
    if isinstance(config.get("plugins"), list):
        import_plugins(config["plugins"])
    is_smoke = explicit is not None and config.get("smoke") is True
    if is_smoke:
        config = apply_smoke_overrides(config, keys)
    config = _normalise_numbers(config)
    _refuse_misplaced(config, keys)
    settings = validate_model(Settings, {k: v for k, v in config.items() if k not in CHOSEN}, "")
    _check_budget(settings)
    _check_paper_tables(settings)
    inside(Path(settings.output_dir), settings.experiment, "experiment")
    notes: list[str] = []
    given = {role: dict(config[role]) for role in CHOSEN if isinstance(config.get(role), dict)}
    for role, values in chosen_components(config):
        config[role] = _drop_foreign_keys(role, values, keys, notes)
    _refuse_missing(config)
    config = fill_in(config, settings, keys if is_smoke else None)
    return ResolvedConfig(
        settings=settings,
        config=config,
        notes=notes,
        overrides=_signed_settings(config, keys),
        explicit=frozenset(keys),
        given=given,
    )


def to_container(cfg: DictConfig) -> Values:
    try:
        config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        parts = str(error).splitlines()[0].partition("raised while resolving interpolation: ")
        raise ConfigError(f"{error.full_key or 'config'}: {parts[2] or parts[0]}") from None
    assert isinstance(config, dict)
    resolved: Values = config
    return resolved


def _check_budget(settings: Settings) -> None:
    """Refuse limits that are not valid, and evaluations spaced in the cost of no budget."""
    budget = settings.budget or {}
    validate_model(BudgetKeys, budget, "budget")
    if settings.eval_every == GEOMETRIC and not any(budget.values()):
        raise ConfigError(
            f"eval_every={GEOMETRIC}: evaluations are spaced in the cost of a budget; set one, such as "
            "budget.gradients=100000, or give a number of steps"
        )


def _check_paper_tables(settings: Settings) -> None:
    """Refuse names that no published table has.

    Raises:
        ConfigError: with the nearest that exists.
    """
    for table in settings.paper_tables:
        if conf_folders.find("published", table) is None:
            raise ConfigError(
                f"paper_tables: no table {table}{nearest(table, conf_folders.names('published'))}"
            )


def _refuse_missing(config: Values) -> None:
    """Refuse a run without a component that every run has.

    Raises:
        ConfigError: naming the roles.
    """
    missing = [role for role in REQUIRED if config.get(role) is None]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: not chosen; pick an experiment (runner +experiment=sarcos_mdgp; runner list experiment "
            f"names them) or set {' '.join(f'{role}=…' for role in missing)}"
        )


def _refuse_misplaced(config: Values, explicit: Collection[str]) -> None:
    """Refuse components that are chosen in a way or at a place that is not theirs.

    Raises:
        ConfigError: saying how to choose it.
    """
    for role in CHOSEN:
        if f"{role}.name" in explicit and isinstance(config.get(role), dict):
            name = config[role].get("name")
            raise ConfigError(
                f"{role}.name={name}: keys of another component would be missing; choose it by {role}={name}"
            )
    for role in ROLES:
        if role in config and role not in CHOSEN:
            raise ConfigError(explain_misplaced(role, config[role]))


def _signed_settings(config: Values, explicit: set[str]) -> list[str]:
    """Command-line settings, as resolved, that can change a number."""
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


def explain_misplaced(role: str, value: Any) -> str:
    """The complaint about a component of a role that lives only inside others, chosen for the whole
    run."""
    name = value.get("name", "…") if isinstance(value, dict) else value
    such = ROLES[role].given.format(name)
    return f"{role}={name}: a {role} is a part of another component; give it to one, such as {such}"
