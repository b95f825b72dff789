"""The snapshot of a study that a command line names, taken now if there is none."""

from __future__ import annotations

import argparse
from pathlib import Path

from runner.errors import ConfigError
from runner.study import snapshot as snapshots
from runner.study.choice import refuse_unknown_pairs, select_runs
from runner.study.definition import load_study
from runner.study.score_check import refuse_unknown_scores
from runner.study.snapshot import Snapshot
from runner.study.study_arguments import list_named_plugins
from runner.terminal.printer import announce, out

SHOWN = 8  # refused runs that are printed


def _has_changed(study: str, found: Snapshot) -> bool:
    """True if the study's YAML has changed since it was frozen."""
    try:
        return load_study(study) != found.study
    except ConfigError:  # its file is gone, or it is asked for by the name of its snapshot
        return False


def find_snapshot(given: argparse.Namespace, output_dir: Path, reads_only: bool) -> Snapshot:
    """Snapshot of the study, taken now if there is no earlier one; ``reads_only``: it is not saved.

    Raises:
        ConfigError: an earlier one was frozen with other overrides, or lacks a plug-in.
    """
    name = given.name or Path(given.study).stem
    old_snapshot = None if given.fresh else snapshots.load(name, output_dir)
    if old_snapshot is not None:
        if given.overrides and given.overrides != old_snapshot.extra:
            raise ConfigError(
                f"study {name} was frozen with {' '.join(old_snapshot.extra) or 'no overrides'}; "
                f"give another name (--as …), or take a new snapshot (--fresh)"
            )
        if _has_changed(given.study, old_snapshot):
            out.print(
                f"note     {given.study} has changed since it was frozen ({old_snapshot.taken}); it goes on as it was, "
                "--fresh takes the new one",
            )
        if not reads_only:
            foreign = set(old_snapshot.plugins) - set(list_named_plugins(given))
            snapshots.refuse_unnamed_plugins(foreign, name)
        return old_snapshot
    study = load_study(given.study)
    refuse_unknown_pairs(study, given.overrides, given.only)
    snapshot = snapshots.take(study, name, given.overrides, output_dir, list_named_plugins(given))
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
        out.print(f"frozen   {snapshot.file}: {len(snapshot.runs)} runs")
    return snapshot
