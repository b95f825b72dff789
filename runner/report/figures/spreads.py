"""Figures of the scores of every replicate: violins and boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from runner.record.scores import read_scores
from runner.report.figures.picture import FigureSource, Picture
from runner.report.run_views import RunView
from runner.report.scores.frame import scores_frame
from runner.report.wording import describe_runs, format_count
from runner.study.figure_specs import SpreadSpec

# score with the β chosen by a run; the row with this β is marked
CHOSEN = "beta_selected"


def draw_spread(spec: SpreadSpec, source: FigureSource) -> Picture | None:
    """Draw the scores of the first table with each metric; None without scores."""
    import pandas as pd

    from components.series.figures.spread import spread

    parts = []
    for metric in spec.metrics:
        laid = next(t for t in source.tables if metric in t.spec.metrics)
        part = scores_frame([laid])
        part = part[(part["metric"] == metric) & part["row"].isin(source.names)]
        parts.append(part.assign(group=part["column"] if laid.spec.metric else ""))
    table = pd.concat(parts).rename(columns={"score": "value"}).astype({"value": float})
    if table.empty:
        return None
    table = table.assign(method=table["row"].map(source.names))
    chosen = _find_chosen(source.runs)
    marked = {(source.names[row], group) for row, group in chosen if row in source.names}
    if set(table["group"]) == {""}:
        marked = {(name, "") for name, _ in marked}
    key = next((t.spec.columns for t in source.tables if t.spec.metric in spec.metrics), "")
    label = spec.label or str(key).split(".")[-1]
    figure = spread(table, spec.kind, spec.levels, marked, label, spec.words)
    sizes = sorted(set(table.groupby(["method", "group", "metric"]).size()))
    n_nonfinite = int((~np.isfinite(table["value"])).sum())
    missing = f"; {format_count(n_nonfinite, 'score')} omitted as not finite" if n_nonfinite else ""
    caption = f"{spec.title}; {describe_runs(sizes)}; data: {source.data}{missing}"
    return Picture(figure, caption)


def _find_chosen(runs: list[RunView]) -> Iterator[tuple[str, str]]:
    """Row and column of filter runs with the β chosen by another run in the same cell for the same
    filter."""
    chosen = []
    for view in runs:
        betas = read_scores(view.facts, view.folder, CHOSEN) if view.facts and view.folder else {}
        if betas:
            part = _inference(view).get("filter") or {}
            beta = Counter(betas.values()).most_common(1)[0][0]
            chosen.append((part.get("name"), beta, view.run.cell, _data(view)))
    for view in runs:
        settings = _inference(view)
        if (settings.get("name"), settings.get("beta"), view.run.cell, _data(view)) in chosen:
            columns = (str(value) for key, value in view.run.cell.items() if key != "seed")
            yield view.run.row, next(columns, "")


def _inference(view: RunView) -> Any:
    return view.run.config.get("inference", {})


def _data(view: RunView) -> Any:
    return view.run.config.get("dataset")
