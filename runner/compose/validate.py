"""Stage 3, validate: check run-level keys against their types, ranges and each other.

A message gives the key, its value and the allowed values.  Torch is not imported, so that a
finished run can be reported immediately.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from components.contracts.requirements import CHAINS, LEFT_OUT, THINNING
from components.registry import CHOSEN
from runner.catalogue.settings import GEOMETRIC, BudgetKeys, Settings, Values
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.errors import ConfigError, nearest, similar
from runner.terminal.typed_values import format_typed

LARGEST = 2**63 - 1  # largest integer of torch and of records
FEWEST = 4  # smallest number of draws per chain for ESS and R̂
LONGEST = 10**20  # largest integer reported with all its digits
B = TypeVar("B", bound=BaseModel)
# messages by pydantic's type of error, with fields of its context
MESSAGES = {
    "greater_than": "out of range; must be > {gt:g}",
    "greater_than_equal": "out of range; must be ≥ {ge:g}",
    "less_than": "out of range; must be < {lt:g}",
    "less_than_equal": "out of range; must be ≤ {le:g}",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a word",
    "list_type": "must be a list [a, b, …]",
    "dict_type": "must be a mapping {{a: b}}",
}


def validate(config: Values) -> Settings:
    """Run-level keys of an expanded config.

    Raises:
        ConfigError: a key is unknown, missing or out of range, a limit of the budget is invalid,
            or a published table does not exist.
    """
    for path, value in leaves(config):
        if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
            raise ConfigError(
                f"{path}={format_yaml_value(value)}: is too large; it must be at most 2^63 - 1 = {LARGEST}"
            )
    run_keys = {key: value for key, value in config.items() if key not in CHOSEN}
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
    return settings


def burn_in_key(keys: Mapping[str, Any]) -> str | None:
    """Key of the burn-in, the number of initial steps without kept draws, or None.

    The key ``warmup`` of a method without chains is a KL warm-up and does not count.
    """
    return next(
        (key for key in LEFT_OUT if key in keys and (key != "warmup" or CHAINS in keys)), None
    )


def shorten_for_smoke(config: Values, explicit: Collection[str]) -> Values:
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


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Scalar values with their dotted paths."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, node


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
        text = format_typed(value)
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
