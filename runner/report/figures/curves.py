"""Figures of a report that show the cells of its tables along a grid key: learning curves, curves
under attack."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runner.report.figures.picture import Picture
from runner.report.scores.cells import TableLayout
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import FigureSpec

if TYPE_CHECKING:
    import pandas as pd


def curves(study: StudyDefinition, tables: list[TableLayout]) -> dict[str, Picture]:
    """Learning curves of completed runs: {file stem: (figure, caption)}."""
    import pandas as pd

    from components.figures.supervised.learning_curve import format_metric_name, learning_curve

    pictures = {}
    for spec in study.figures:
        if not isinstance(spec, FigureSpec):
            continue
        names, preset = study.row_labels(spec)
        rows = [row for laid in tables for row in _points(spec, laid, names)]
        if rows:
            data = ", ".join(dict.fromkeys(d for laid in tables for d in laid.data))
            settings = f", settings {preset}" if preset else ""
            titles = {laid.spec.name: laid.spec.title.partition(" (")[0] for laid in tables}
            drawn = " and ".join(map(format_metric_name, spec.metrics))
            shows = titles.get(spec.x, f"{drawn} against {spec.x.split('.')[-1]}")
            table = pd.DataFrame(rows)
            if spec.floor is not None:
                floors = _means("floor", tables, names, name=spec.floor)
                table = table.merge(floors, how="left")
                shows = f"{shows}; dashed, shaded up to it: {titles[spec.floor]}"
            if spec.against is not None:
                table = _across(spec, table, tables, names)
                shows = (
                    f"{drawn} against {format_metric_name(spec.against)} by {spec.x.split('.')[-1]}"
                )
            caption = f"{shows}, mean ± SE{settings}; data: {data}"
            figure = learning_curve(table, spec.label, logarithmic=spec.against is None)
            pictures[spec.name] = Picture(figure, caption)
    return pictures


def _means(
    column: str,
    tables: list[TableLayout],
    names: dict[str, str],
    **asked: str | None,
) -> pd.DataFrame:
    """Means of the cells of a table, by model and column: model, n_train, ``column``.

    ``asked``: keys of the table's specification and their values.
    """
    import pandas as pd

    found = [
        {"model": names[cell.row.name], "n_train": float(cell.column), column: cell.summary.mean}
        for laid in tables
        if all(getattr(laid.spec, key) == value for key, value in asked.items())
        for cell in laid.cells
        if cell.row.name in names and cell.summary is not None
    ]
    means = pd.DataFrame(found, columns=["model", "n_train", column])
    return means.astype({"n_train": float, column: float})


def _across(
    spec: FigureSpec, table: pd.DataFrame, tables: list[TableLayout], names: dict[str, str]
) -> pd.DataFrame:
    """The points of a curve moved sideways to the mean of another score of the same cell."""
    scores = _means("against", tables, names, columns=spec.x, metric=spec.against)
    return table.merge(scores, how="inner").assign(n_train=lambda both: both["against"])


def _points(spec: FigureSpec, laid: TableLayout, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Points that a table has on the curves of a figure; ``names``: label of each row."""
    # one run has a whole curve: the columns of a table, which are numbers
    across = laid.spec.name == spec.x
    if not across and (laid.spec.columns != spec.x or laid.spec.metric not in spec.metrics):
        return
    for cell in laid.cells:
        summary = cell.summary if cell.row.name in names else None
        # some of the replicates are no fair point on a curve
        if summary is None or not math.isfinite(summary.mean) or "so far" in cell.reason:
            continue
        yield {
            "model": names[cell.row.name],
            "n_train": float(cell.column),
            "mean": summary.mean,
            "se": math.nan if summary.se is None else summary.se,
            "metric": spec.metrics[0] if across else laid.spec.metric,
        }
