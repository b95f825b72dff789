"""Rows of a suite as studies with a single row: names, frozen configs and recorded lines."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from runner.arena.frozen import refuse_frozen
from runner.arena.lengths import find_length
from runner.arena.norms import choose_norm, refuse_other_norm
from runner.arena.scores import find_method, read_kept_lines, read_snapshots
from runner.arena.suite import Suite
from runner.catalogue.list_and_show import choose_components
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.study import snapshot as snapshots
from runner.study.choice import plan_selected_runs
from runner.study.plan import plan
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import PROBLEM_KEY, Row
from runner.terminal.printer import announce, count_each
from runner.terminal.tables import print_named

ROLES = ("inference", "model", "attacker", "dataset", "gradient")  # a row is named by the first
UNMEASURED = "not selected"  # the reason why a run has no config yet


def make_row(overrides: list[str], label: str | None) -> Row:
    """Make a row with the given overrides."""
    name = label or name_row(overrides)
    if "/" in name or not name.strip():
        raise ConfigError(f"--as {name!r}: not a valid row name; choose one such as mine")
    return Row(label=name, model=name, preset="", overrides=overrides)


def name_row(overrides: list[str]) -> str:
    """Default name of a row: its component, or all of its overrides."""
    chosen = choose_components(overrides)
    named = next((chosen[role] for role in ROLES if role in chosen), "")
    return named or " ".join(overrides) or "mine"


def snapshot_name(suite: Suite, budget: str, row: str) -> str:
    """Name under which a row's runs are frozen."""
    return ".".join(filter(None, [suite.experiment, budget, row.replace(" ", "_")]))


def measure(suite: Suite, budget: str, row: Row, frozen: Container[str] = ()) -> Row:
    """The row with overrides of each problem that adjust the length of its run to the budget; runs
    with names in ``frozen`` keep theirs.
    """
    refuse_frozen(suite, row)
    limits = suite.budgets.get(budget, {})
    cells = dict(row.cells.get(PROBLEM_KEY, {}))
    runs = [run for run in plan(suite.to_study([row]), []) if run.name not in frozen]
    for planned in count_each(f"measuring {row.name}", runs):
        problem = planned.cell[PROBLEM_KEY]
        norm = choose_norm(suite, problem, planned.overrides)
        length = find_length(suite, limits, [*planned.overrides, *norm])
        cells[problem] = norm + length + cells.get(problem, [])
    return row.model_copy(update={"cells": row.cells | {PROBLEM_KEY: cells}})


def freeze(
    suite: Suite,
    budget: str,
    row: Row,
    output_dir: Path,
    modules: list[str],
    frozen: Sequence[FrozenRun] = (),
) -> Snapshot:
    """Compose a row on every problem, with a length set by the budget, and save the snapshot; runs
    in ``frozen`` are not composed.

    Raises:
        ConfigError: the row is invalid, or cannot be composed with any problem.
    """
    names = {run.name for run in frozen}
    study = suite.to_study([measure(suite, budget, row, names)])
    name = snapshot_name(suite, budget, row.name)
    snapshot = snapshots.take(study, name, [], output_dir, modules, frozen)
    runs = [refuse_other_norm(suite, str(run.cell[PROBLEM_KEY]), run) for run in snapshot.runs]
    snapshot = replace(snapshot, runs=runs)
    composed = [run for run in runs if run.name not in names]
    for run in composed:
        if run.refused and not (run.unfit or run.lacks_data):
            raise ConfigError(f"{run.name}: {run.refused}")
        method = find_method(run)
        if method and method.reads_truth:  # the reference of its scores
            raise ConfigError(
                f"arena: inference={run.config['inference']['name']} reads the truth, but a row must "
                "not; remove reads_truth from its class"
            )
    if missing := [str(run.refused) for run in composed if run.lacks_data]:
        announce(
            f"{len(missing)} of {len(runs)} problems have no data here and are skipped",
            f"{missing[0]}\nWhen the data are available, repeat with --fresh.",
        )
    snapshots.save(snapshot)
    print_named("frozen", f"{snapshot.file}: {len(composed)} of {len(runs)} runs")
    return snapshot


def prepare_row(
    suite: Suite,
    budget: str,
    row: Row,
    output_dir: Path,
    modules: Sequence[str] = (),
    fresh: bool = False,
    only: Sequence[str] = (),
) -> Snapshot:
    """Snapshot of a row, in which the runs selected by ``only`` are frozen now unless they were
    frozen before.

    Raises:
        ConfigError: the snapshot has other overrides, or the row cannot be frozen.
    """
    name = snapshot_name(suite, budget, row.name)
    inside(output_dir / "studies", name, "--as")
    snapshot = None if fresh else snapshots.load(name, output_dir)
    old_row = snapshot.study.rows[0] if snapshot else row
    if old_row.overrides != row.overrides:
        raise ConfigError(
            f"arena {suite.name}: row {row.name} was frozen with {' '.join(old_row.overrides)}; "
            f"give another name (--as …), or add --fresh"
        )
    study = suite.to_study([row])
    planned = [replace(run, refused=UNMEASURED) for run in plan_selected_runs(study, [], [])]
    runs = snapshot.runs if snapshot else planned
    selected = {run.name for run in plan_selected_runs(study, [], [*only])}
    kept = [run for run in runs if run.refused != UNMEASURED or run.name not in selected]
    if snapshot is None or len(kept) < len(runs):
        snapshot = freeze(suite, budget, old_row, output_dir, [*modules], kept)
    return snapshot


def find_snapshots(suite: Suite, budget: str, output_dir: Path) -> list[Snapshot]:
    """Frozen rows of a budget, in the order of freezing."""
    pattern = snapshot_name(suite, budget, "*")
    paths = sorted((output_dir / "studies").glob(f"{pattern}/snapshot.yaml"))
    loaded = [snapshots.load(path.parent.name, output_dir) for path in paths]
    return sorted(filter(None, loaded), key=lambda s: s.taken)


def read_lines(suite: Suite, budget: str, frozen: list[Snapshot]) -> pd.DataFrame:
    """Lines of the user's rows and the kept lines of the budget, with the compared costs and each
    replicate once; a row of the user takes precedence over a kept row of the same name.
    """
    own = read_snapshots(suite, budget, frozen)
    kept = read_kept_lines(suite)
    kept = kept[(kept["budget"] == budget) & ~kept["row"].isin(own["row"])]
    lines = pd.concat([own, kept], ignore_index=True)
    is_of_suite = lines["problem"].isin(suite.problems)
    is_of_suite &= lines["replicate"] < (suite.replicates or math.inf)
    lines = lines[is_of_suite].drop_duplicates(["row", "problem", "replicate", "step"])
    return lines[[name for name in map(str, lines) if suite.counts(name)]]
