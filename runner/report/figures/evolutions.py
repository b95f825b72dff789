"""Figures of a report that show whole runs: how a metric went from evaluation to evaluation, in
every replicate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runner.record.facts import Facts
from runner.record.lines import Line, by_replicate, readable_lines
from runner.report.figures.picture import Picture
from runner.report.wording import describe_runs
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import EvolutionSpec
from runner.study.snapshot import FrozenRun, Snapshot

if TYPE_CHECKING:
    import pandas as pd


AXES = {"steps": "iteration", "seconds": "seconds of training"}


def training_seconds(lines: list[Line]) -> Iterator[tuple[Line, float]]:
    """Each line with the seconds that its replicate has trained until then: evaluations before it
    are not among them."""
    clock: dict[int, float] = {}  # of the last line
    seconds: dict[int, float] = {}
    for line in lines:
        r = line["replicate"]
        if line["phase"] == "train":
            seconds[r] = seconds.get(r, 0.0) + line["time"] - clock.get(r, 0.0)
        clock[r] = line["time"]
        yield line, seconds.get(r, 0.0)


def evolutions(study: StudyDefinition, snapshot: Snapshot | None) -> dict[str, Picture]:
    """Every figure of ``study.evolutions`` that has a record to draw: {file stem: (figure,
    caption)}."""
    if snapshot is None or not study.evolutions:
        return {}
    import pandas as pd

    from components.figures.samples.evolution import evolution

    pictures = {}
    for spec in study.evolutions:
        names, preset = study.row_labels(spec)
        lines = list(_points(spec, snapshot, names.keys() | {spec.less}))
        if lines:
            table = pd.DataFrame(lines)
            band = spec.shows == "band"
            sizes = sorted(set(table.groupby("method")["replicate"].nunique()))
            settings = f", {preset}" if preset else ""
            caption = f"{spec.title}{settings}; {describe_runs(sizes)}"
            of_each = "mean and central 90 %" if band else "mean"
            if spec.less is not None:
                table = differences(table, spec.less)
                if table.empty:  # the row that is subtracted has no record yet
                    continue
                table = table if band else means(table)
                caption += f", {of_each} of each less {spec.less}, replicate by replicate"
            elif band:
                caption += f", {of_each}"
            table["method"] = table["method"].map(names)
            label = spec.label or AXES[spec.against]
            figure = evolution(
                table, spec.exact, label, band=band, words=spec.words, known=spec.known
            )
            pictures[spec.name] = Picture(figure, caption)
    return pictures


def list_evaluations(
    snapshot: Snapshot, rows: Collection[str | None], cell: Mapping[str, object]
) -> Iterator[tuple[FrozenRun, Facts, Line, float]]:
    """Evaluations of the runs of some rows in a cell of the grid: run, its facts, line, and seconds
    of training until then."""
    for run in snapshot.runs:
        facts = None if run.refused or run.row not in rows else snapshot.facts(run)
        if facts is None or any(run.cell.get(key) != value for key, value in cell.items()):
            continue
        for line, seconds in training_seconds(readable_lines(snapshot.folder(run))):
            if line["phase"] != "train":
                yield run, facts, line, seconds


def _points(
    spec: EvolutionSpec, snapshot: Snapshot, rows: Collection[str | None]
) -> Iterator[dict[str, Any]]:
    """Values of the metrics of a figure at every evaluation of the runs of its rows."""
    for run, facts, line, seconds in list_evaluations(snapshot, rows, spec.cell):
        for metric in spec.metrics:
            for r, value in by_replicate(line, metric):
                yield {
                    "method": run.row,
                    "replicate": f"{facts['seed']}/{r}",
                    "step": seconds if spec.against == "seconds" else line["step"],
                    "metric": metric,
                    "value": value,
                }


def differences(table: pd.DataFrame, row: str) -> pd.DataFrame:
    """Each method's values minus a row's at the same step of the same replicate."""
    keys = ["replicate", "step", "metric"]
    # the end of a replicate is an evaluation too
    table = table.drop_duplicates(["method", *keys], keep="last")
    of_row = table[table["method"] == row].drop(columns="method")
    both = table[table["method"] != row].merge(of_row, on=keys, suffixes=("", "_of_row"))
    return both.assign(value=both["value"] - both["value_of_row"])


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Over the replicates, which become one."""
    mean = table.groupby(["method", "metric", "step"], sort=False)["value"].mean()
    return mean.reset_index().assign(replicate="mean")
