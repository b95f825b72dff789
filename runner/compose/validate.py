"""Stage 3, validate: check run-level keys against their types, ranges and each other.

A message gives the key, its value and the allowed values.  Torch is not imported, so that a
finished run can be reported immediately.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hydra.core.hydra_config import HydraConfig
from pydantic import BaseModel, ValidationError

from components.contracts.requirements import THINNING
from components.registry import CHOSEN
from runner.catalogue.settings import GEOMETRIC, BudgetKeys, Settings
from runner.catalogue.words import parse_overrides
from runner.compose.compose import Composed, compose_in_full, restore_hydra_on_exit, without_hydra
from runner.compose.expand import FEWEST, ExpandedConfig, burn_in_key, expand
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.disk.read_yaml import leaves
from runner.errors import ConfigError, nearest, similar

LARGEST = 2**63 - 1  # largest integer of torch and of records
LONGEST = 10**20  # largest integer reported with all its digits
B = TypeVar("B", bound=BaseModel)
# messages by pydantic's type of error, with fields of its context
MESSAGES = {
    "greater_than": "out of range, must be > {gt:g}",
    "greater_than_equal": "out of range, must be ≥ {ge:g}",
    "less_than": "out of range, must be < {lt:g}",
    "less_than_equal": "out of range, must be ≤ {le:g}",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a word",
    "list_type": "must be a list [a, b, …]",
    "dict_type": "must be a mapping {{a: b}}",
}


@dataclass(frozen=True, kw_only=True)
class ResolvedConfig(ExpandedConfig):
    """A valid config, before its components are built.

    It has an identity and a folder once its data are named.
    """

    settings: Settings
    data: str = ""  # name of the data ("sarcos-sim" is never "sarcos"); empty: not named yet
    signature: str = ""

    @property
    def budget(self) -> dict[str, float]:
        """Cost limits of a replicate, by kind."""
        limits = self.settings.budget or {}
        return {kind: limit for kind, limit in limits.items() if limit is not None}

    @property
    def folder(self) -> Path:
        return Path(self.settings.output_dir) / self.settings.experiment / self.signature


def validate(expanded: ExpandedConfig) -> ResolvedConfig:
    """Validate the run-level keys of an expanded config.

    Raises:
        ConfigError: a key is unknown, missing or out of range, a limit of the budget is invalid,
            or a published table does not exist.
    """
    for path, value in leaves(expanded.config):
        if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
            raise ConfigError(
                f"{path}={format_yaml_value(value)}: too large, must be at most 2^63 - 1 = {LARGEST}"
            )
    run_keys = {key: value for key, value in expanded.config.items() if key not in CHOSEN}
    settings = validate_model(Settings, run_keys, "")
    budget = settings.budget or {}
    validate_model(BudgetKeys, budget, "budget")
    if settings.eval_every == GEOMETRIC and not any(budget.values()):
        raise ConfigError(
            f"eval_every={GEOMETRIC}: requires a budget, because evaluations are spaced in its cost; set one, such as "
            "budget.gradients=100000, or give a number of steps"
        )
    for table in settings.paper_tables:
        if conf_folders.find("published", table) is None:
            raise ConfigError(
                f"paper_tables: unknown table {table}{nearest(table, conf_folders.names('published'))}"
            )
    inside(Path(settings.output_dir), settings.experiment, "experiment")
    return ResolvedConfig(**vars(expanded), settings=settings)


def resolve(composed: Composed) -> ResolvedConfig:
    """Expand and validate a composed config.

    Raises:
        ConfigError: an error detectable without building a component, in one to three lines.
    """
    return validate(expand(composed))


def resolve_words(words: list[str], once: str) -> ResolvedConfig:
    """Compose, expand and validate the config of ``words``: overrides and ``--config-dir``.

    Args:
        words: as on the command line of one run.
        once: advice for an override with several values, such as "call run once for each".

    Raises:
        ConfigError: an error detectable without building a component.
    """
    argv, folder = conf_folders.split_config_dir(words)
    conf_folders.use(folder)
    if swept := [o.input_line for o in parse_overrides(argv) if o.is_sweep_override()]:
        raise ConfigError(f"{swept[0]}: several values need a sweep; {once}")
    with restore_hydra_on_exit():
        cfg = compose_in_full(argv)
        HydraConfig.instance().set_config(cfg)  # for ${hydra:…} in a user's config
        return resolve(without_hydra(cfg))


def check_draws(keys: Mapping[str, Any], settings: Settings) -> list[str]:
    """Notes for the user if a sampler with these keys would keep few draws; empty otherwise.

    Raises:
        ConfigError: no draws would be kept.
    """
    key = burn_in_key(keys)
    if key is None or settings.steps is None or settings.debug == "profile":
        return []
    steps = settings.steps
    burn_in = keys[key]
    thinning = keys.get(THINNING, 1)
    n_kept = (steps - burn_in) // thinning
    if burn_in >= steps:
        raise ConfigError(
            f"inference.{key}={burn_in}: no draw would be kept in steps={steps}; raise steps, or lower inference.{key}"
        )
    if n_kept == 0:
        raise ConfigError(
            f"inference.thinning={thinning}: no draw would be kept from the {steps - burn_in} steps after "
            f"inference.{key}={burn_in}; raise steps, or lower inference.thinning"
        )
    if n_kept < FEWEST:
        draws = "1 draw" if n_kept == 1 else f"{n_kept} draws"
        return [
            f"steps={steps}: each chain would keep {draws} (inference.{key}={burn_in}, thinning={thinning}); "
            f"ESS and R̂ require {FEWEST}"
        ]
    return []


def validate_model(
    build: type[B], values: dict[str, Any], where: str, keys: Iterable[str] | None = None
) -> B:
    """Build a pydantic model from the ``values`` of the config key ``where``.

    Args:
        keys: allowed keys, for suggestions.

    Raises:
        ConfigError: up to three keys are invalid, in one line each.
    """
    try:
        return build(**values)
    except ValidationError as errors:
        names = [name for name in (build.model_fields if keys is None else keys) if name != "name"]
        complaints: dict[str, str] = {}
        # A union reports an error for each member: keep the first error of each key, for a number
        # the one about numbers.
        for error in sorted(errors.errors(), key=_is_literal_error):
            key = str(error["loc"][0]) if error["loc"] else ""
            complaints.setdefault(
                key, _complaint(where, error, names) + _plugin_location(build, error["type"])
            )
        raise ConfigError("\n".join(list(complaints.values())[:3])) from None


def format_yaml_value(value: Any) -> str:
    """Format a value as YAML, truncated if long."""
    if isinstance(value, BaseModel):  # a nested component, already built
        text = str(dict(value).get("name"))
    elif isinstance(value, list):
        text = f"[{', '.join(format_yaml_value(item) for item in value)}]"
    elif isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "null"}[value]
    else:
        text = f"{value:.3g}" if isinstance(value, int) and abs(value) > LONGEST else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _plugin_location(build: type[BaseModel], kind: str) -> str:
    """Location of a user's class if it or its YAML lacks a key; "" for built-in classes."""
    fixes = {
        "missing": "add it to its YAML",
        "extra_forbidden": "its YAML and its class must have the same keys",
    }
    if build.__module__.partition(".")[0] in ("components", "runner") or kind not in fixes:
        return ""
    from components.contracts.user_code import format_code_location

    return f" (class {build.__name__}: {format_code_location(build)}; {fixes[kind]})"


def _is_literal_error(error: Mapping[str, Any]) -> bool:
    """True if the error is about allowed words and the value is a number."""
    return error["type"] == "literal_error" and isinstance(error.get("input"), int | float)


def _complaint(where: str, error: Mapping[str, Any], known: list[str]) -> str:
    """Format a pydantic error in one line."""
    # members of a union are not keys: function-after[…], constrained-float, a class
    path = ".".join(
        str(p) for p in (where, *error["loc"]) if re.fullmatch(r"[^\W\d][\w.]*|\d+", str(p))
    )
    kind = error["type"]
    context = error.get("ctx", {})
    input_value = error.get("input")
    value = format_yaml_value(input_value)
    if kind == "extra_forbidden":
        return f"{path}: unknown key{nearest(str(error['loc'][-1]), known)}"
    if kind == "missing":
        return f"{path}: missing; give it a value"
    if kind == "literal_error":
        expected = [
            w.strip().strip("'") for w in context["expected"].replace(" or ", ", ").split(",")
        ]
        near = similar(input_value, expected) if isinstance(input_value, str) else ""
        return f"{path}={value}: not one of {' | '.join(expected)}{near}"
    if kind == "value_error":  # "key: problem; fix", from a validator of one key
        message = str(context["error"])
        if not where:
            return message if message.startswith(path) else f"{path}: {message}"
        return f"{where}.{message}" if message.partition(":")[0] in known else f"{where}: {message}"
    if kind in MESSAGES:
        return f"{path}={value}: {MESSAGES[kind].format(**context)}"
    return f"{path}={value}: {error['msg'][0].lower()}{error['msg'][1:]}"
