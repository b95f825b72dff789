"""``runner arena tune``: choose settings of a row on a suite's validation problems, at the budget
of its runs.

The cost of the choice is written next to the page of the suite, and reported by rows that are run
with these settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from runner.arena.rows import make_row, prepare_row
from runner.arena.scores import SCORED, read_snapshots
from runner.arena.standing.boards import Board
from runner.arena.standing.problem_results import mean_results
from runner.arena.standing.standings import Standing
from runner.arena.suite import GROUP, Suite
from runner.arena.summary import rank_cells
from runner.catalogue.words import parse_overrides
from runner.disk.atomic import write_text
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.study.study import run_remaining
from runner.study.table_specs import PROBLEM_KEY, Row
from runner.terminal.printer import number
from runner.terminal.tables import print_named, print_table

COLUMNS = ("setting", "mean rank")  # of the table of settings


def list_settings(overrides: Sequence[str]) -> list[list[str]]:
    """All combinations of the values in overrides such as ``inference.step_size=0.01,0.1``.

    Raises:
        ConfigError: no override has several values.
    """
    choices = [_list_values(word) for word in overrides]
    settings = [list(words) for words in itertools.product(*choices)]
    if len(settings) < 2:
        raise ConfigError(
            "arena tune: nothing to choose from; give a key several values, such as "
            "inference.step_size=0.01,0.1"
        )
    return settings


def _list_values(word: str) -> list[str]:
    """One override for each of its values."""
    for override in parse_overrides([word]):
        if override.is_sweep_override():
            key = word.partition("=")[0]
            return [f"{key}={value}" for value in override.sweep_string_iterator()]
    return [word]


def to_validation(suite: Suite) -> Suite:
    """Suite with its validation problems in place of its problems.

    Raises:
        ConfigError: the suite has no validation problems.
    """
    if not suite.validation:
        raise ConfigError(
            f"arena tune: suite {suite.name} has no validation problems; take the settings of "
            "the studies that are listed in the suite's comment"
        )
    changes = {
        "name": f"tuning.{suite.name}",
        "problems": suite.validation,
        "grid": suite.grid | {PROBLEM_KEY: [*suite.validation]},
    }
    return suite.model_copy(update=changes)


def choice_file(suite: Suite, budget: str, row: str, output_dir: Path) -> Path:
    """File of the row with the settings chosen for a budget."""
    name = ".".join(filter(None, [row, budget, "tuned.json"]))
    return inside(output_dir / GROUP / suite.name, name, "--as")


def read_tuned(suite: Suite, budget: str, row: Row, output_dir: Path) -> Row:
    """The row, with the cost of choosing its settings if they were chosen by ``tune``."""
    path = choice_file(suite, budget, row.name, output_dir)
    if not path.is_file():
        return row
    choice = Row.model_validate_json(path.read_bytes())
    is_same = set(choice.overrides) == set(row.overrides)
    return row.model_copy(update={"tuned": choice.tuned if is_same else {}})


def tune(
    suite: Suite,
    budget: str,
    overrides: list[str],
    name: str | None,
    modules: list[str],
    output_dir: Path,
    jobs: int,
    fresh: bool = False,
) -> tuple[Row, int]:
    """Run each setting on the validation problems; return the row with the best setting, by mean
    rank on the suite's first score (ties are resolved by its median), and the exit code.

    Raises:
        ConfigError: there is nothing to choose from, or no setting has a score.
    """
    settings = list_settings(overrides)
    derived = to_validation(suite)
    base = make_row(settings[0], name).name
    frozen = []
    rows: dict[str, Row] = {}
    for words in settings:
        changed = [word for word in words if word not in overrides]
        row = make_row(words, f"{base} {' '.join(changed)}")
        rows[row.name] = row
        snapshot = prepare_row(derived, budget, row, output_dir, modules, fresh)
        code = run_remaining(snapshot, snapshot.runs, jobs)
        if code > 1:
            return row, code
        frozen.append(snapshot)
    lines = read_snapshots(derived, budget, frozen)
    metric = suite.metrics[0]
    standings = Board(suite, budget, lines).rank(suite.tables[0])
    title = f"settings on the validation problems of {suite.name}"
    header = (*COLUMNS, f"median {metric}", "failed")
    cells = [[s.row, *rank_cells(s), str(s.states["failed"])] for s in standings]
    print_table(title, header, cells)
    best = next((s for s in standings if s.ranks and any(map(s.states.get, SCORED))), None)
    if best is None:
        raise ConfigError("arena tune: no setting ran on any validation problem; give other values")
    spent = count_costs(lines, metric, suite.budgets.get(budget, {}))
    chosen = make_row(rows[best.row].overrides, base).model_copy(update={"tuned": spent})
    path = choice_file(suite, budget, base, output_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, chosen.model_dump_json(indent=1) + "\n")
    costs = ", ".join(f"{number(n)} {kind.replace('_', ' ')}" for kind, n in spent.items())
    if best.tied:
        print_named("tie", describe_tie(best, metric))
    print_named("chosen", " ".join(chosen.overrides))
    print_named("cost", f"{costs}, of {len(settings)} settings on {len(derived.problems)} problems")
    return chosen, 0


def describe_tie(best: Standing, metric: str) -> str:
    """Reason for the choice among settings with equal mean ranks."""
    n = len(best.tied)
    others = f"{n} other {'setting' if n == 1 else 'settings'}"
    return (
        f"mean rank {best.mean_rank:.1f} is shared by {others}: the best median {metric} "
        f"decides, {number(best.typical)}"
    )


def count_costs(lines: pd.DataFrame, metric: str, budget: Mapping[str, float]) -> dict[str, float]:
    """Costs of a replicate by kind, summed over rows and problems.

    A diverged run counts as its full budget."""
    results = mean_results(lines, metric)
    total = results.drop(columns=["score", "state"]).sum()
    if n_failed := (results["state"] == "failed").sum():
        total = total.add(pd.Series(budget) * n_failed, fill_value=0.0)
    return {str(kind): float(n) for kind, n in total.items()}
