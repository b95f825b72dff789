"""Figures of cells along a grid key: learning curves, curves under attack."""

from __future__ import annotations

import numpy as np

from runner.report.figures.picture import FigureSource, Picture
from runner.report.scores.frame import cells_frame
from runner.report.wording import join_words
from runner.study.figure_specs import FigureSpec


def draw_curve(spec: FigureSpec, source: FigureSource) -> Picture | None:
    """Draw means ± SE of complete cells; None if there are no such cells."""
    import pandas as pd

    from components.figures.supervised.learning_curve import format_metric_name, learning_curve

    cells = cells_frame(source.tables)
    cells = cells.assign(
        model=cells["row"].map(source.names),
        n_train=pd.to_numeric(cells["column"], errors="coerce"),
    )
    # after adding columns, because the columns of all rows would fill an empty frame
    cells = cells.dropna(subset="model")
    titles = {laid.spec.name: laid.spec.title.partition(" (")[0] for laid in source.tables}
    # a run has a complete curve over the columns of a table, which are numbers
    is_across = cells["table"] == spec.x
    is_along = (cells["key"] == spec.x) & cells["metric"].isin(spec.metrics)
    # incomplete sets of replicates are not drawn
    is_complete = np.isfinite(cells["mean"]) & ~cells["is_partial"]
    table = cells[(is_across | is_along) & is_complete]
    if table.empty:
        return None
    table = table.assign(metric=table["metric"].where(~is_across, spec.metrics[0]))
    drawn = join_words([format_metric_name(metric) for metric in spec.metrics])
    axis = spec.label.replace("$", "")
    shows = titles.get(spec.x, f"{drawn} against {axis}")
    point = ["model", "n_train", "mean"]
    if spec.floor is not None:
        floors = cells.loc[cells["table"] == spec.floor, point]
        table = table.merge(floors.rename(columns={"mean": "floor"}), how="left")
        shows = f"{shows}; dashed line below the shading: {titles[spec.floor]}"
    if spec.against is not None:
        is_other = (cells["key"] == spec.x) & (cells["metric"] == spec.against)
        renamed = cells.loc[is_other, point].rename(columns={"mean": "against"})
        table = table.merge(renamed).assign(n_train=lambda both: both["against"])
        shows = f"{drawn} against {axis} by {spec.x.split('.')[-1]}"
    settings = f", settings {source.preset}" if source.preset else ""
    figure = learning_curve(table, spec.label, logarithmic=spec.against is None)
    caption = f"{shows[0].upper()}{shows[1:]}, mean ± SE{settings}; data: {source.data}"
    return Picture(figure, caption)
