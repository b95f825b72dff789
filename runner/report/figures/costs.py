"""Figures of a report that show a score against its cost: steps, seconds of training, or a cost
that records count (``cost/gradients``, …).

Curves are means over replicates at each evaluation, bands their central 90 %.  A row is on
the Pareto front if no other row has both a final score and a total cost at least as good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from components.metrics.names import COST_PREFIX, ScoreDirection, better
from runner.record.lines import by_replicate
from runner.report.figures.evolutions import list_evaluations
from runner.report.figures.picture import Picture
from runner.report.wording import format_range
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import CostSpec
from runner.study.snapshot import Snapshot
from runner.study.table_specs import POOLED_KEY

if TYPE_CHECKING:
    import pandas as pd

COST_LABELS = {
    "steps": "steps",
    "seconds": "seconds of training",
    "densities": "evaluations of the log density",
    "gradients": "gradient evaluations",
    "forwards": "rows through the model",
    "environment_steps": "environment steps",
    "cpu_seconds": "CPU seconds of training",
}


def costs(study: StudyDefinition, snapshot: Snapshot | None) -> dict[str, Picture]:
    """Every figure of kind ``cost`` that has evaluations to draw: {file stem: picture}."""
    specs = [spec for spec in study.figures if isinstance(spec, CostSpec)]
    if snapshot is None or not specs:
        return {}
    pictures = {}
    for spec in specs:
        picture = _draw(spec, study, snapshot)
        if picture is not None:
            pictures[spec.name] = picture
    return pictures


def _draw(spec: CostSpec, study: StudyDefinition, snapshot: Snapshot) -> Picture | None:
    """One figure; None: there is no evaluation with a cost."""
    import pandas as pd

    from components.figures.samples.cost import cost_figure
    from components.figures.supervised.learning_curve import format_metric_name

    names, preset = study.row_labels(spec)
    points = pd.DataFrame(_points(spec, names, snapshot))
    if points.empty:
        return None
    missing = points[points["cost"].isna()]
    table = points[~points["run"].isin(missing["run"])]
    if table.empty:
        return None
    direction = _direction(spec, study)
    curves, finals = summarise_curves(table), summarise_finals(table, direction)
    score = spec.label or format_metric_name(spec.metric)
    cost = COST_LABELS[spec.against]
    counts = table.groupby(["panel", "method"])["replicate"].nunique()
    settings = f", {preset}" if preset else ""
    title = spec.title or f"{score} against {cost}"
    caption = (
        f"{title}{settings}; mean and central 90 % of {format_range(list(counts), 'replicate')}"
    )
    caption += "; points: final score"
    if direction is not None:
        caption += ", filled on the Pareto front"
    if spec.against == "seconds" and table["is_shared"].any():
        caption += "; replicates side by side share their seconds"
    if len(missing):
        caption += f"; no count of {cost}: {', '.join(missing['method'].unique())}"
    return Picture(cost_figure(curves, finals, direction, cost, score), caption)


def _direction(spec: CostSpec, study: StudyDefinition) -> ScoreDirection | None:
    """Direction of the score, by itself or by a table that has it."""
    by_tables = (table.better for table in study.tables if spec.metric in table.metrics)
    return better(spec.metric) or next(by_tables, None)


def _points(spec: CostSpec, names: dict[str, str], snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Score and cost of every evaluation; a cost that nobody counted is NaN."""
    for run, facts, line, seconds in list_evaluations(snapshot, names, spec.cell):
        keys = (key for key in run.cell if key not in (POOLED_KEY, *spec.cell))
        panel = ", ".join(f"{key.split('.')[-1]} {run.cell[key]}" for key in keys)
        counted = dict(by_replicate(line, COST_PREFIX + spec.against))
        cost = {"steps": line["step"], "seconds": seconds}.get(spec.against)
        for r, value in by_replicate(line, spec.metric):
            if math.isfinite(value):
                yield {
                    "run": run.name,
                    "is_shared": bool(facts.get("vectorised")),
                    "method": names[run.row],
                    "panel": panel,
                    "replicate": f"{facts['seed']}/{r}",
                    "step": line["step"],
                    "cost": counted.get(r, math.nan) if cost is None else cost,
                    "value": value,
                }


def summarise_curves(table: pd.DataFrame) -> pd.DataFrame:
    """Mean cost, mean score and central 90 % of the scores over replicates at each step."""
    last = table.drop_duplicates(["panel", "method", "replicate", "step"], keep="last")
    return _summarise(last, ["panel", "method", "step"])


def summarise_finals(table: pd.DataFrame, direction: ScoreDirection | None) -> pd.DataFrame:
    """The same of each replicate's last evaluation, and which methods are on the front."""
    last = table.drop_duplicates(["panel", "method", "replicate"], keep="last")
    finals = _summarise(last, ["panel", "method"])
    finals["front"] = False
    for _, group in finals.groupby("panel", sort=False):
        points = list(zip(group["cost"], group["mean"], strict=True))
        finals.loc[group.index, "front"] = pareto_front(points, direction)
    return finals


def _summarise(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    groups = table.groupby(keys, sort=False)
    columns = {
        "cost": groups["cost"].mean(),
        "mean": groups["value"].mean(),
        "low": groups["value"].quantile(0.05),
        "high": groups["value"].quantile(0.95),
    }
    import pandas as pd

    return pd.DataFrame(columns).reset_index()


def pareto_front(points: list[tuple[float, float]], direction: ScoreDirection | None) -> list[bool]:
    """True for each (cost, score) that no other point dominates; all False without a direction."""
    if direction is None:
        return [False] * len(points)
    sign = 1.0 if direction == "lower" else -1.0
    losses = [(cost, sign * score) for cost, score in points]
    return [
        not any(c <= cost and s <= score and (c, s) != (cost, score) for c, s in losses)
        for cost, score in losses
    ]
