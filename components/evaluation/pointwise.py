"""Pointwise log-likelihoods and predictive draws of S draws, by training observation.

Observations are labels, times of a structural series, or rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.predictive import (
    Categorical,
    GaussianMixture,
    Predictive,
    component_log_probs,
    components_of,
    sample_labels,
)
from components.contracts.problems import Rows
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.posteriors.draws import Draws
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.structural.structural_posterior import StructuralDraws

AT_ONCE = 4_000_000  # maximum numbers of a predictive in memory
STREAM = 9_001  # index of the evaluation generator that draws labels

PredictiveFn = Callable[[Tensor], Predictive]  # of inputs x [B, D]


@dataclass(frozen=True)
class Pointwise:
    """Pointwise log-likelihoods and predictive draws of S draws for the n training labels."""

    name: str
    log_likelihood: Tensor  # [S, n]
    observed: Tensor | None  # [n]; None if they are not single numbers
    drawn: Tensor | None  # of the predictive [S, n]; None if not available
    axes: dict[str, list[Any]]  # dimensions of the n observations, and their coordinates


def pointwise_of_labels(
    problem: Supervised, predictive: PredictiveFn, n_draws: int, rng: Rng
) -> tuple[Pointwise, Tensor]:
    """Pointwise values of the observed training labels, and their f.

    f is the mean or the logits [S, B, …] by which the S draws predict the labels.

    Raises:
        ConfigMismatchError: a draw's predictive is itself a mixture.
    """
    x = problem.train.x
    y = problem.train.y
    mask = problem.train.mask
    generator = rng.at("evaluation", STREAM)
    size = max(1, AT_ONCE // (n_draws * problem.n_tasks * problem.n_classes))
    parts = []
    with torch.no_grad():
        for rows, labels in zip(x.split(size), y.split(size), strict=True):
            parts.append(_evaluate_predictive(predictive(rows), labels, n_draws, generator))
    log_likelihood, y_draws, f = (torch.cat(values, 1) for values in zip(*parts, strict=True))
    axes: dict[str, list[Any]]
    tasks = problem.task_names or [str(t) for t in range(problem.n_tasks)]
    if problem.n_tasks == 1:
        axes = {"row": mask[:, 0].nonzero()[:, 0].tolist()}
    elif bool(mask.all()):
        axes = {"row": list(range(len(x))), "task": tasks}
    else:
        axes = {"label": [f"{row}/{tasks[task]}" for row, task in mask.nonzero().tolist()]}
    return Pointwise("y", log_likelihood[:, mask], y[mask], y_draws[:, mask], axes), f


def _evaluate_predictive(
    said: Predictive, y: Tensor, n_draws: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """log p(y | x, θ), draws of y and f, [S, B, T] each; f of classes [S, B, T, K]."""
    f = components_of(said)
    if len(f) != n_draws:
        raise ConfigMismatchError(
            "the prediction of one parameter draw is itself a mixture, which is not supported"
        )
    if isinstance(said, Categorical):
        y = y.clamp_min(0)  # arbitrary where the label is missing
    return component_log_probs(said, y), sample_labels(said, generator), f


def of_series(draws: StructuralDraws, rng: Rng) -> Pointwise:
    """One-step predictive values of each observed time given the times before it."""
    series = draws.series
    is_observed = draws.of.design(series).seen
    y = series.y[0, :, 0]
    is_observed = is_observed[: len(y)]
    mean, variance = (value[:, : len(y)][:, is_observed] for value in draws.beforehand(series))
    times = series.dates[: len(y)] or range(1, len(y) + 1)
    axes: dict[str, list[Any]] = {
        "time": [
            time for time, is_present in zip(times, is_observed.tolist(), strict=True) if is_present
        ]
    }
    y = y[is_observed].to(mean)
    ahead = GaussianMixture(mean, variance)
    y_draws = sample_labels(ahead, rng.at("evaluation", STREAM))
    return Pointwise("y", component_log_probs(ahead, y), y, y_draws, axes)


def of_rows(problem: Unlabelled, draws: Draws) -> Pointwise:
    """Log-likelihoods of rows without labels; there are no predictive draws."""
    train = problem.train
    assert isinstance(draws.model, LogJoint), "``inference_groups`` accepts only this type"
    assert isinstance(train, Rows), "and not words"
    with torch.no_grad():
        size = max(1, AT_ONCE // max(1, train.n_rows))
        values = torch.cat(
            [draws.model.log_likelihood(theta, train) for theta in draws.flat.split(size)]
        )
    observed = train.x.flatten() if train.x.numel() == train.n_rows else None
    return Pointwise("x", values, observed, None, {"row": list(range(train.n_rows))})
