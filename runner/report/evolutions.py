"""Figures of a report that show whole runs: how a metric went from evaluation to evaluation, replicate by replicate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.record.record import read_lines
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def evolutions(study: StudyDefinition, snapshot: Snapshot | None) -> dict[str, tuple[Figure, str]]:
    """Every figure of ``study.evolutions`` that has a record to draw: {file stem: (figure, caption)}."""
    if snapshot is None or not study.evolutions:
        return {}
    import pandas as pd

    from components.figures.evolution import evolution

    drawn = {}
    for spec in study.evolutions:
        lines: list[dict[str, Any]] = []
        for run in snapshot.runs:
            facts = None if run.refused else snapshot.facts(run)
            if facts is None or any(run.cell.get(key) != value for key, value in spec.cell.items()):
                continue
            for line in read_lines(snapshot.folder(run)):
                if line["phase"] == "train":
                    continue
                replicate = f"{facts['seed']}/{line['replicate']}"
                lines += [
                    {"method": run.row, "replicate": replicate, "step": line["step"], "metric": metric, "value": value}
                    for metric in spec.metrics
                    if (value := line["metrics"].get(metric)) is not None
                ]
        if lines:
            table = pd.DataFrame(lines)
            caption = f"{spec.title}; {table['replicate'].nunique()} runs of each"
            drawn[spec.name] = (evolution(table, spec.exact), caption)
    return drawn
