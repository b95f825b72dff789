"""The snapshot of a study that a command line names, taken now if there is none."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.errors import ConfigError
from runner.study import snapshot as snapshots
from runner.study.choice import refuse_unknown_pairs, select_runs
from runner.study.definition import load_study
from runner.study.score_check import refuse_unknown_scores
from runner.study.snapshot import Snapshot
from runner.study.study_arguments import list_named_plugins
from runner.terminal.printer import announce, out, show_count

SHOWN = 8  # refused runs that are printed


def _has_changed(study: str, found: Snapshot) -> bool:
    """True if the study's YAML has changed since it was frozen."""
    try:
        return load_study(study) != found.study
    except ConfigError:  # its file is gone, or it is asked for by the name of its snapshot
        return False


def find_snapshot(given: argparse.Namespace, output_dir: Path, reads_only: bool) -> Snapshot:
    """Snapshot of the study, taken now if there is no earlier one; ``reads_only``: it is not saved."""
    name = given.name or Path(given.study).stem
    old_snapshot = None if given.fresh else snapshots.load(name, output_dir)
    if old_snapshot is not None:
        _check_old_snapshot(old_snapshot, given, name, reads_only)
        return old_snapshot
    study = load_study(given.study)
    refuse_unknown_pairs(study, given.overrides, given.only)
    snapshot = snapshots.take(
        study,
        name,
        given.overrides,
        output_dir,
        list_named_plugins(given),
        watch_composing,
    )
    refuse_unknown_scores(snapshot)
    refused = [run for run in snapshot.runs if run.refused]
    if refused:
        lines = [f"{run.name}: {run.refused}" for run in refused[:SHOWN]]
        more = [f"… and {len(refused) - SHOWN} more"] if len(refused) > SHOWN else []
        announce(
            f"{len(refused)} of {len(snapshot.runs)} runs cannot be composed and are left out",
            "\n".join([*lines, *more, "Once they can be: --fresh."]),
        )
    select_runs(snapshot, given.only)  # a misspelt --only costs only the time to report it
    if not reads_only:
        snapshots.save(snapshot)
        out.print(f"frozen   {snapshots.location(name, output_dir)}: {len(snapshot.runs)} runs")
    return snapshot


def _check_old_snapshot(
    snapshot: Snapshot, given: argparse.Namespace, name: str, is_shown: bool
) -> None:
    """Check that a study can go on as it was frozen.

    Raises:
        ConfigError: the command line has other overrides, or lacks a plug-in.
    """
    if given.overrides and given.overrides != snapshot.extra:
        raise ConfigError(
            f"study {name} was frozen with {' '.join(snapshot.extra) or 'no overrides'}; "
            f"give another name (--as …), or take a new snapshot (--fresh)"
        )
    if _has_changed(given.study, snapshot):
        out.print(
            f"note     {given.study} has changed since it was frozen ({snapshot.taken}); it goes on as it was, "
            "--fresh takes the new one",
        )
    if not is_shown:
        foreign = set(snapshot.plugins) - set(list_named_plugins(given))
        snapshots.refuse_unnamed_plugins(foreign, name)


def watch_composing(runs: list[Any]) -> Iterator[Any]:
    """Runs, with a line on the terminal about how many are composed."""
    for i, run in enumerate(runs, 1):
        show_count("composing", i, len(runs))
        yield run
