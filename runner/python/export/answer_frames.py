"""Predictive distributions as frames, in the units of the labels."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from components.contracts.predictive import (
    Categorical,
    Predictive,
    components_of,
    is_finite,
    top_class,
)

LEVELS = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)  # levels of the quantiles


def frame_of_predictive(
    predictive: Predictive, tasks: Sequence[str], classes: Sequence[str]
) -> pd.DataFrame:
    """One row per input: mean, sd and quantiles, or class and probabilities.

    With several tasks, columns are named ``task: column``.  Cells are empty (NaN, or None for a
    class) where a prediction is not finite."""
    n_tasks = components_of(predictive).shape[2]
    names = [str(name) for name in tasks] or [f"y{t + 1}" for t in range(n_tasks)]
    columns: dict[str, object] = {}
    missing = ~is_finite(predictive)  # [B, T]
    values = _columns(predictive, classes)
    for t in range(n_tasks):
        for name, value in values.items():
            key = name if n_tasks == 1 else f"{names[t]}: {name}"
            if name == "class":
                columns[key] = [classes[k] if k >= 0 else None for k in value[:, t].tolist()]
            else:
                columns[key] = value[:, t].masked_fill(missing[:, t], torch.nan).tolist()
    return pd.DataFrame(columns)


def _columns(predictive: Predictive, classes: Sequence[str]) -> dict[str, Tensor]:
    """Columns [B, T] by name."""
    if isinstance(predictive, Categorical):
        probs = predictive.probs
        each = {f"p({name})": probs[..., k] for k, name in enumerate(classes)}
        return {"class": predictive.guess, **each}
    quantiles = {f"q{level:g}": predictive.quantile(level) for level in LEVELS}
    return {"mean": predictive.mean, "sd": predictive.variance.sqrt(), **quantiles}


def frame_of_clusters(log_density: Tensor, clusters: Tensor | None) -> pd.DataFrame:
    """One row per input: cluster, counted from 1, its probabilities and log p(x)."""
    out: dict[str, object] = {}
    if clusters is not None:
        numbers = [k or None for k in (top_class(clusters) + 1).tolist()]
        out["cluster"] = numbers if all(numbers) else pd.array(numbers, dtype="Int64")
        out |= {f"p({k + 1})": clusters[:, k].tolist() for k in range(clusters.shape[1])}
    return pd.DataFrame({**out, "log_density": log_density.tolist()})
