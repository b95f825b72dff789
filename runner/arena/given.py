"""``runner arena score``: draws of another program as a row of a suite.

Each problem has a file, which a run with ``inference=given_draws`` reads and scores like the draws
of a registered method; the row is recorded, ranked and packed like any other row.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.inference.peers.given_draws import read_draws
from components.problems.density import Density
from runner.arena.rows import make_row
from runner.arena.suite import Suite
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.errors import ConfigError, UnfitError, nearest
from runner.execution.assembly import build_model, load_problem
from runner.execution.rng import Streams
from runner.study.table_specs import PROBLEM_KEY, Row
from runner.terminal.tables import print_named

SUFFIXES = (".nc", ".npy")
STATED = "(costs stated)"  # suffix of a row's name if its costs are stated, not counted


def make_given_row(suite: Suite, name: str, words: Sequence[str], costs: Sequence[str]) -> Row:
    """Make a row from files of draws; invalid files are rejected.

    Args:
        words: files or folders; a file has the name of its problem, or is given as problem=file.
        costs: kind=number, the cost of a replicate on each problem.

    Raises:
        ConfigError: a cost is wrong, a file belongs to no problem of the suite, or a problem has two
            files.
        ConfigMismatchError: a file has no draws of its problem.
    """
    stated = [f"inference.{cost}" for cost in costs]
    row = make_row(["inference=given_draws", "steps=1", *stated], f"{name} {STATED}")
    cells = {}
    for problem, path in _find_files(suite, words).items():
        density, model, rng = load_density(suite, problem, row.overrides)
        read_draws(path, model, density.sample_prior(1, rng.init))
        cells[problem] = [f"inference.file='{path.resolve()}'"]
    return row.model_copy(update={"cells": {PROBLEM_KEY: cells}})


def _find_files(suite: Suite, words: Sequence[str]) -> dict[str, Path]:
    """The file of each problem."""
    file_of = dict[str, Path]()
    for word in words:
        problem, _, name = word.rpartition("=")
        place = Path(name)
        files = [path for path in place.glob("*") if path.suffix in SUFFIXES]
        for path in sorted(files) if place.is_dir() else [place]:
            named = problem or path.stem
            if named not in suite.problems:
                near = nearest(named, suite.problems)
                raise ConfigError(f"{path}: no problem of {suite.name}{near}; give PROBLEM={path}")
            if named in file_of:
                raise ConfigError(
                    f"{path}: {named} already has the file {file_of[named]}; give only one"
                )
            file_of[named] = path
    return file_of


def print_parameters(suite: Suite) -> None:
    """Print the number and the ordered names of the parameters of each problem."""
    for problem in suite.problems:
        density, *_ = load_density(suite, problem, ["inference=given_draws"])
        names = f"{join_names(density.names)} ({len(density.names)})"
        print_named("problem", f"{problem}: {names}")


def join_names(names: Sequence[str]) -> str:
    """Ordered names; a vector is abbreviated to its first and last elements: x1 … x9."""

    def locate(place: tuple[int, str]) -> tuple[str, int]:
        index, name = place
        stem, number = re.findall(r"^(.*?)(\d*)\]?$", name)[0]
        return stem, int(number or index) - index

    shown: list[str] = []
    for _, group in itertools.groupby(enumerate(names), locate):
        first, *others = [name for _, name in group]
        shown += [f"{first} … {others[-1]}"] if len(others) > 1 else [first, *others]
    return ", ".join(shown)


def load_density(suite: Suite, problem: str, overrides: list[str]) -> tuple[Density, Any, Streams]:
    """The density of a problem, its model, and streams.

    Raises:
        ConfigError: the problem is not a density.
    """
    words = [*suite.overrides, *suite.problems[problem], *overrides, "tracking=false"]
    try:
        job = prepare(compose(words))
    except UnfitError:
        raise ConfigError(
            f"arena {suite.name}: {problem} is not a density, so draws cannot be scored on it"
        ) from None
    rng = Streams(0)
    density = load_problem(job, rng)
    assert isinstance(density, Density)
    return density, build_model(job, density, rng), rng
