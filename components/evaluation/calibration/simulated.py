"""Data sets simulated from a model: θ* from its prior, labels given θ* at the inputs of a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import (
    Conjugate,
    GivenFunction,
    LogJoint,
    StructuralSeries,
    ThetaPredictive,
)
from components.contracts.predictive import Predictive, sample_labels
from components.contracts.problems import Batch
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.spacing import spaced_rows
from components.models.networks.flat_network import FlatNetwork
from components.problems.supervised import Supervised
from components.series.forecasting import Forecasting
from components.series.structural.simulate import draw_theta, simulate_series

SIMULATION = 2  # random stream of θ* and the labels
CAPABLE = (
    "a supervised model with a log joint (linear_regression, logistic_regression, mlp, bnn, …), a Gaussian process "
    "(igp, cgp, gp_classifier, idgp), or model=structural on a series with a future"
)


@dataclass(frozen=True)
class PriorLabels:
    """A supervised problem with simulated labels, and the true parameters that generated them."""

    problem: Supervised
    theta: Tensor | None  # θ* [1, P]; None if the truth is a function
    law: Predictive  # p(y | truth) at the training rows, then the test rows: S = 1


@dataclass(frozen=True)
class PriorSeries:
    """A structural series simulated from θ* [1, P], with its future."""

    problem: Forecasting
    theta: Tensor
    horizons: list[int]  # times of the future to rank, from 0, evenly spaced


Simulated = PriorLabels | PriorSeries


def check_simulates(model: object, problem: object, name: str) -> None:
    """Reject a model that cannot simulate from its prior.

    Raises:
        ConfigMismatchError: the message names models that can.
    """
    if isinstance(model, FlatNetwork) and model.flat_prior:
        raise ConfigMismatchError(
            f"{model.flat_prior}, so that parameters can be drawn from the prior"
        )
    if isinstance(problem, Supervised) and _simulates_labels(model):
        return
    if isinstance(problem, Forecasting) and isinstance(model, StructuralSeries):
        if model.structure.lag is not None:
            raise ConfigMismatchError(
                "model.blocks: a column of lagged observations cannot be simulated; remove its "
                "block"
            )
        return
    raise ConfigMismatchError(
        f"model={name}: cannot simulate this dataset from its prior; models that can: {CAPABLE}"
    )


def _simulates_labels(model: object) -> bool:
    by_theta = isinstance(model, LogJoint) and isinstance(model, ThetaPredictive)
    return by_theta or isinstance(model, Conjugate | GivenFunction)


def simulate(model: Any, problem: Any, inputs: int, rng: Rng) -> Simulated:
    """Draw θ* (or f*) from the prior, and labels of all rows given it.

    Args:
        model: built on ``problem``; accepted by ``check_simulates``.
        problem: inputs and masks of the rows; its labels have no effect.
        inputs: number of test rows to keep, or of future times to rank, evenly spaced.
        rng: streams of this data set.
    """
    generator = rng.at("data", SIMULATION)
    with torch.no_grad():
        if isinstance(problem, Forecasting):
            theta = draw_theta(model.structure, generator)
            drawn = simulate_series(model, problem, theta, generator)
            ahead = problem.future.shape[1]
            horizons = spaced_rows(ahead, inputs).tolist()
            return PriorSeries(drawn, theta, horizons)
        return _simulate_labels(model, problem, inputs, generator)


def _simulate_labels(
    model: Any, problem: Supervised, inputs: int, generator: torch.Generator
) -> PriorLabels:
    test = keep_rows(problem.test, inputs)
    x = torch.cat([problem.train.x, test.x])
    theta = None
    if isinstance(model, GivenFunction):
        law = model.sample_prior_f(x, generator)
    else:
        theta = model.sample_prior(1, generator)
        law = model.predictive(theta, x)
    y = sample_labels(law, generator)[0]
    n = problem.n
    changed = replace(
        problem,
        train=replace(problem.train, y=y[:n].to(problem.train.y.dtype)),
        test=replace(test, y=y[n:].to(test.y.dtype)),
        truth={},
        moments=False,
        figures=[],
    )
    return PriorLabels(changed, theta, law)


def keep_rows(batch: Batch, n: int) -> Batch:
    """The given number of rows, evenly spaced, or all, with all labels observed."""
    kept = batch.part(spaced_rows(batch.n_rows, n).to(batch.x.device), 1.0)
    return replace(kept, mask=torch.ones_like(kept.mask))


def check_prior(before: object, after: object, theta: Tensor | None, name: str) -> None:
    """Reject a model with a prior that depends on the labels, which change in simulation.

    Raises:
        ConfigMismatchError: the prior depends on the labels.
    """
    if isinstance(before, StructuralSeries) and isinstance(after, StructuralSeries):
        if _describe_prior(before) != _describe_prior(after):
            raise ConfigMismatchError(
                f"model={name}: its prior is in units of the series, so θ* cannot be drawn first; "
                f"set model.scale=1 model.centre=0 model.df=5 (or others)"
            )
    elif theta is not None and isinstance(before, LogJoint) and isinstance(after, LogJoint):
        densities = [float(model.log_prior(theta)) for model in (before, after)]
        if not math.isclose(*densities, rel_tol=1e-6, abs_tol=1e-6):
            raise ConfigMismatchError(
                f"model={name}: its prior depends on the labels, so θ* cannot be drawn first; "
                f"calibration requires a prior that is independent of them"
            )


def _describe_prior(model: StructuralSeries) -> list[float]:
    """Numbers of a structural prior that could depend on the series."""
    structure = model.structure
    numbers = [number for scale in structure.scales for number in (scale.guess, scale.upper)]
    return [*numbers, *structure.mean.tolist(), *structure.sd.tolist()]
