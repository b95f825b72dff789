"""Figures of complete runs: a metric over the evaluations of every replicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.report.figures.evaluations import evaluations_frame
from runner.report.figures.picture import FigureSource, Picture
from runner.report.wording import describe_runs
from runner.study.figure_specs import EvolutionSpec

if TYPE_CHECKING:
    import pandas as pd

AXES = {"steps": "iteration", "seconds": "seconds of training"}


def draw_evolution(spec: EvolutionSpec, source: FigureSource) -> Picture | None:
    """Draw the figure; None without records."""
    from components.figures.samples.evolution import evolution

    rows = source.names.keys() | {spec.less}
    table = evaluations_frame(source.runs, rows, spec.cell, spec.metrics)
    if table.empty:
        return None
    table = table.rename(columns={spec.against: "step", "row": "method"})
    is_band = spec.shows == "band"
    sizes = sorted(set(table.groupby("method")["replicate"].nunique()))
    caption = f"{spec.title}{source.settings}; {describe_runs(sizes)}"
    center = "mean and central 90 %" if is_band else "mean"
    if spec.less is not None:
        table = differences(table, spec.less)
        if table.empty:  # the subtracted row has no record yet
            return None
        if not is_band:  # mean over replicates
            mean = table.groupby(["method", "metric", "step"], sort=False)["value"].mean()
            table = mean.reset_index().assign(replicate="mean")
        caption += f", {center} of the differences from {spec.less}, paired by replicate"
    elif is_band:
        caption += f", {center}"
    table["method"] = table["method"].map(source.names)
    label = spec.label or AXES[spec.against]
    figure = evolution(table, spec.exact, label, band=is_band, words=spec.words, known=spec.known)
    return Picture(figure, caption)


def differences(table: pd.DataFrame, row: str) -> pd.DataFrame:
    """Values of each method minus the values of a row, for the same step and replicate."""
    keys = ["replicate", "step", "metric"]
    # the end of a replicate also counts as an evaluation
    table = table.drop_duplicates(["method", *keys], keep="last")
    subtracted = table.loc[table["method"] == row, [*keys, "value"]]
    both = table[table["method"] != row].merge(subtracted, on=keys, suffixes=("", "_of_row"))
    return both.assign(value=both["value"] - both["value_of_row"])
