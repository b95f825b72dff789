"""Frozen keys of a suite: keys that a row must not set, and deviations of a run from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from omegaconf import OmegaConf

from runner.arena.suite import Suite
from runner.catalogue.words import explicit_keys
from runner.compose.compose import compose
from runner.compose.expand import expand_component, known_keys
from runner.errors import ConfigError
from runner.study.table_specs import Row

# Groups and keys of a run that make its problem, its budget and its repetitions.
FROZEN = ("dataset", "attacker", "budget", "seed", "replicates", "validation", "smoke", "debug")
BATCH_SIZE = "dataset.batch_size"  # a matter of the method
SIZES = "attacker.eps"  # of a suite in which attackers are rows: of the problem
COMPONENTS = ("dataset", "attacker", "inference")


def list_keys(overrides: Iterable[str]) -> set[str]:
    """Keys that overrides set, or delete."""
    return explicit_keys([word if "=" in word else f"{word}=" for word in overrides])


def list_open(suite: Suite) -> set[str]:
    """Keys of frozen groups that a row may set, as rows of the suite do."""
    cells = (words for row in suite.rows for cell in row.cells.values() for words in cell.values())
    rows = (row.overrides for row in suite.rows)
    return {BATCH_SIZE}.union(*map(list_keys, [*rows, *cells]))


def list_groups(suite: Suite) -> tuple[str, ...]:
    """Frozen groups, including the inference method if the problem sets it (as for a victim)."""
    words = itertools.chain(suite.overrides, *suite.problems.values())
    return (*FROZEN, *(["inference"] if "inference" in list_keys(words) else []))


def refuse_frozen(suite: Suite, row: Row) -> None:
    """Check a row's overrides.

    Raises:
        ConfigError: an override sets a key that the suite has frozen.
    """
    is_open = list_open(suite)
    groups = list_groups(suite)
    for word in row.overrides:
        (key,) = list_keys([word])
        group = key.partition(".")[0]
        is_size = bool(suite.norms) and key == SIZES
        if is_size or (group in groups and not {group, key} & is_open):
            raise ConfigError(
                f"arena {suite.name}: {word}: {key if is_size else group} is frozen, so that it "
                f"is the same for every row; remove it"
            )


def list_deviations(
    suite: Suite, limits: Mapping[str, float], problem: str, config: Mapping[str, Any]
) -> Iterator[str]:
    """Frozen keys whose values in a run's config differ from the suite's."""
    is_open = list_open(suite)
    replicates = [] if suite.replicates is None else [f"replicates={suite.replicates}"]
    composed = compose([*replicates, *suite.overrides, *suite.problems[problem]]).cfg
    meant: dict[str, Any] = OmegaConf.to_container(composed, resolve=True)  # type: ignore[assignment]
    meant["budget"] = dict(limits)
    for group in list_groups(suite):
        if group not in is_open and _close(group, config, is_open) != _close(group, meant, is_open):
            yield group
    if problem in suite.norms and config["attacker"]["eps"] != meant["attacker"]["eps"]:
        yield SIZES


def _close(group: str, config: Mapping[str, Any], is_open: set[str]) -> Any:
    """A group of a config in frozen form, without its open keys and unset keys."""
    value = config.get(group)
    if not isinstance(value, dict):
        return value
    if group in COMPONENTS:  # with its parts, without keys of an experiment that it lacks
        keys = known_keys(group, value, group).keys
        row_keys = {key: each for key, each in value.items() if key in keys}
        value = expand_component(group, row_keys, group)
    kept = {k: v for k, v in value.items() if v is not None and f"{group}.{k}" not in is_open}
    return kept or None
