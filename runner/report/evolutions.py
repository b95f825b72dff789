"""Figures of a report that show whole runs: how a metric went from evaluation to evaluation, replicate by replicate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runner.record.lines import Line, by_replicate, read_lines
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


AXES = {"steps": "iteration", "seconds": "seconds of training"}


def trained(lines: list[Line]) -> Iterator[tuple[Line, float]]:
    """Each line with the seconds that its replicate has trained until then: evaluations before it are not among them."""
    clock: dict[int, float] = {}  # of the last line
    spent: dict[int, float] = {}
    for line in lines:
        r = line["replicate"]
        if line["phase"] == "train":
            spent[r] = spent.get(r, 0.0) + line["time"] - clock.get(r, 0.0)
        clock[r] = line["time"]
        yield line, spent.get(r, 0.0)


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
            for line, seconds in trained(read_lines(snapshot.folder(run))):
                if line["phase"] == "train":
                    continue
                at = seconds if spec.against == "seconds" else line["step"]
                for metric in spec.metrics:
                    for r, value in by_replicate(line, metric):
                        one = {"method": run.row, "replicate": f"{facts['seed']}/{r}", "step": at}
                        lines.append(one | {"metric": metric, "value": value})
        if lines:
            table = pd.DataFrame(lines)
            caption = f"{spec.title}; {table['replicate'].nunique()} runs of each"
            if spec.less is not None:
                table = differences(table, spec.less)
                caption += f", mean of each less {spec.less}, replicate by replicate"
            drawn[spec.name] = (evolution(table, spec.exact, AXES[spec.against]), caption)
    return drawn


def differences(table: pd.DataFrame, row: str) -> pd.DataFrame:
    """Means over the replicates of each method's values less those of a row at the same step of the same replicate."""
    keys = ["replicate", "step", "metric"]
    table = table.drop_duplicates(["method", *keys], keep="last")  # the end of a replicate is an evaluation too
    of_row = table[table["method"] == row].drop(columns="method")
    both = table[table["method"] != row].merge(of_row, on=keys, suffixes=("", "_of_row"))
    both["value"] -= both["value_of_row"]
    return both.groupby(["method", "metric", "step"], sort=False)["value"].mean().reset_index().assign(replicate="mean")
