"""Snapshot of a study for a command, taken if missing, with a check that the runs can provide the
scores in its tables and figures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from components.metrics.names import PREFIXES, base_name, score_names
from runner.errors import ConfigError, nearest
from runner.record.scores import ESS_RATE, STEP_TIME
from runner.study import snapshot as snapshots
from runner.study.choice import plan_selected_runs, select_runs
from runner.study.definition import StudyDefinition, load_study
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.study_arguments import list_named_plugins
from runner.study.table_specs import DISTANCES, Row
from runner.terminal.printer import announce, out
from runner.terminal.tables import print_named

SHOWN = 8  # largest number of printed refused runs


def _has_changed(study: str, found: Snapshot) -> bool:
    """True if the study's YAML has changed since it was frozen."""
    try:
        return load_study(study) != found.study
    except ConfigError:  # the file was removed, or the name belongs to a snapshot
        return False


def find_snapshot(given: argparse.Namespace, output_dir: Path, reads_only: bool) -> Snapshot:
    """Snapshot of the study, taken if missing, and saved unless ``reads_only``.

    Raises:
        ConfigError: the existing snapshot has different overrides, or lacks a plug-in.
    """
    name = given.name or Path(given.study).stem
    old_snapshot = None if given.fresh else snapshots.load(name, output_dir)
    if old_snapshot is not None:
        if given.overrides and given.overrides != old_snapshot.extra:
            raise ConfigError(
                f"study {name} was frozen with {' '.join(old_snapshot.extra) or 'no overrides'}; "
                f"choose another name (--as …), or take a new snapshot (--fresh)"
            )
        if _has_changed(given.study, old_snapshot):
            out.print(
                f"note     {given.study} has changed since it was frozen ({old_snapshot.taken}); using the frozen version "
                "(--fresh takes the new one)",
            )
        if not reads_only:
            foreign = set(old_snapshot.plugins) - set(list_named_plugins(given))
            snapshots.refuse_unnamed_plugins(foreign, name)
        return old_snapshot
    study = load_study(given.study)
    plan_selected_runs(study, given.overrides, given.only)
    snapshot = snapshots.take(study, name, given.overrides, output_dir, list_named_plugins(given))
    refuse_unknown_scores(snapshot)
    refused = [run for run in snapshot.runs if run.refused]
    if refused:
        lines = [f"{run.name}: {run.refused}" for run in refused[:SHOWN]]
        more = [f"… and {len(refused) - SHOWN} more"] if len(refused) > SHOWN else []
        announce(
            f"{len(refused)} of {len(snapshot.runs)} runs cannot be composed and are skipped",
            "\n".join([*lines, *more, "After fixing them, add --fresh."]),
        )
    select_runs(snapshot, given.only)  # reports a misspelt --only early
    if not reads_only:
        snapshots.save(snapshot)
        print_named("frozen", f"{snapshot.file}: {len(snapshot.runs)} runs")
    return snapshot


def refuse_unknown_scores(snapshot: Snapshot) -> None:
    """Refuse a study if a table or a figure names a score that no run provides.

    Runs with plug-ins may provide additional scores.

    Raises:
        ConfigError: a score is unknown; the message gives the table or figure and the nearest
            score.
    """
    scores = {run.row: frozenset[str]() for run in snapshot.runs}
    for run in snapshot.runs:
        if run.config.get("plugins"):
            return
        scores[run.row] |= frozenset() if run.refused else _scores_of(run)
    study = snapshot.study
    for item, metrics, rows in _list_shown(study):
        composed = [scores[row.name] for row in rows if scores.get(row.name)]
        names = frozenset().union(*composed)
        for metric in metrics if composed else ():
            prefix = metric.partition("/")[0]
            is_prefixed = prefix in PREFIXES and prefix != metric
            if base_name(metric) not in names and not is_prefixed:
                raise ConfigError(
                    f"study {snapshot.name}: {item}: no run has the score {metric}{nearest(metric, names)}"
                )


def _list_shown(study: StudyDefinition) -> Iterator[tuple[str, Iterable[str], list[Row]]]:
    """Items of a report: name, metrics, and rows that must have them."""
    for table in study.tables:
        rows = [row for row in study.rows if table.rows is None or row.name in table.rows]
        yield f"table {table.name}", table.metrics, rows
    for figure in [*study.figures, *study.evolutions, *study.spreads]:
        yield f"figure {figure.name}", figure.metrics, study.rows_of_figure(figure)


def _scores_of(run: FrozenRun) -> frozenset[str]:
    """Names of the scores of a run and of scores that reports derive from them."""
    from runner.compose.check import build_component

    dataset: Any = build_component("dataset", run.config["dataset"], "dataset")
    names = score_names(
        dataset.problem_kind(), run.config.get("attacker") is not None, dataset.target_kind()
    )
    return names | {"cost", STEP_TIME} | DISTANCES | ({ESS_RATE} if "ess" in names else set())
