"""Figures of a report that show the scores of every replicate: violins and boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from runner.report.figures.picture import Picture
from runner.report.scores.cells import TableLayout
from runner.report.scores.recorded import scores
from runner.report.wording import describe_runs
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import SpreadSpec
from runner.study.snapshot import FrozenRun, Snapshot

# the score with the β that a run has chosen: the row run with it is marked
CHOSEN = "beta_selected"


def spreads(
    study: StudyDefinition, snapshot: Snapshot | None, tables: list[TableLayout]
) -> dict[str, Picture]:
    """Every figure of ``study.spreads`` that has scores to draw: {file stem: (figure, caption)}."""
    if not study.spreads:
        return {}
    import pandas as pd

    from components.series.figures.spread import spread

    pictures = {}
    for spec in study.spreads:
        names, _ = study.row_labels(spec)
        lines = list(_points(spec, tables, names))
        if not lines:
            continue
        table = pd.DataFrame(lines)
        marked = {
            (names[row], group) for row, group in _selected_beta_runs(snapshot) if row in names
        }
        groups = set(table["group"])
        if groups == {""}:
            marked = {(name, "") for name, _ in marked}
        key = next((t.spec.columns for t in tables if t.spec.metric in spec.metrics), "")
        label = spec.label or str(key).split(".")[-1]
        figure = spread(table, spec.kind, spec.levels, marked, label, spec.words)
        sizes = sorted(set(table.groupby(["method", "group", "metric"]).size()))
        n_nonfinite = int((~table["value"].abs().lt(float("inf"))).sum())
        counted = describe_runs(sizes)
        data = ", ".join(dict.fromkeys(d for t in tables for d in t.data))
        missing = f"; left out as not finite: {n_nonfinite}" if n_nonfinite else ""
        pictures[spec.name] = Picture(figure, f"{spec.title}; {counted}; data: {data}{missing}")
    return pictures


def _points(
    spec: SpreadSpec, tables: list[TableLayout], names: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Scores that a figure shows, replicate by replicate; ``names``: label of each row."""
    for metric in spec.metrics:
        laid = next(t for t in tables if metric in t.spec.metrics)
        for cell in laid.cells:
            if cell.row.name in names and laid.spec.column_metric(cell.column) == metric:
                group = cell.column if laid.spec.metric else ""
                one = {"method": names[cell.row.name], "group": group, "metric": metric}
                yield from (one | {"value": value} for value in cell.values.values())


def _selected_beta_runs(snapshot: Snapshot | None) -> set[tuple[str, str]]:
    """Row and column of each run with the selected β.

    It is the β that another run in the same cell has chosen for the same filter.
    """
    if snapshot is None:
        return set()
    cells = set()
    for run in snapshot.runs:
        facts = snapshot.facts(run)
        betas = scores(facts, snapshot.folder(run), CHOSEN) if facts else {}
        if not betas:
            continue
        beta = Counter(betas.values()).most_common(1)[0][0]
        part = _inference(run).get("filter")
        name = part.get("name") if isinstance(part, dict) else None
        for other in snapshot.runs:
            settings = _inference(other)
            same = other.cell == run.cell and other.config.get("dataset") == run.config.get(
                "dataset"
            )
            if same and settings.get("name") == name and settings.get("beta") == beta:
                cells.add(
                    (other.row, next((str(v) for k, v in other.cell.items() if k != "seed"), ""))
                )
    return cells


def _inference(run: FrozenRun) -> dict[str, Any]:
    values = run.config.get("inference")
    return values if isinstance(values, dict) else {}
