"""Figures of a report that show whole runs: how a metric went from evaluation to evaluation, replicate by replicate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.record.lines import read_lines
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def evolutions(study: StudyDefinition, snapshot: Snapshot | None) -> dict[str, tuple[Figure, str]]:
    """Every figure of ``study.evolutions`` that has a record to draw: {file stem: (figure, caption)}."""
    if snapshot is None or not study.evolutions:
        return {}
    import pandas as pd

    from components.figures.samples.evolution import evolution

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
                for metric in spec.metrics:
                    values = line["metrics"].get(metric)
                    if values is None:
                        continue
                    several = isinstance(values, list)  # all replicates at once
                    for r, value in enumerate(values) if several else [(line["replicate"], values)]:
                        one = {"method": run.row, "replicate": f"{facts['seed']}/{r}", "step": line["step"]}
                        lines.append(one | {"metric": metric, "value": value})
        if lines:
            table = pd.DataFrame(lines)
            caption = f"{spec.title}; {table['replicate'].nunique()} runs of each"
            drawn[spec.name] = (evolution(table, spec.exact), caption)
    return drawn
