"""Quantities ranked by simulation-based calibration, at the truth and at posterior draws.

Named parameters, f(x) and a new label y(x) at held-out inputs, and one quantity that depends on the
labels (log joint, or log-likelihood): a posterior that ignores its data has uniform ranks in all
others.

Source: Talts et al. (2018); Modrák et al. (2023), section 4 (data-dependent quantities)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from components.contracts.capabilities import GivenFunction, LogJoint
from components.contracts.posteriors import HoldsDraws, Predicts, Redraws, module_of
from components.contracts.predictive import (
    Categorical,
    PoissonMixture,
    Predictive,
    component_log_probs,
    components_of,
    part_of,
)
from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.evaluation.calibration.simulated import (
    PriorLabels,
    PriorSeries,
    Simulated,
    sample_labels,
)
from components.inference.linear.conjugate_posterior import ConjugatePosterior
from components.posteriors.draws import FORECASTS, Draws
from components.series.structural.structural_posterior import StructuralDraws

MOST_PARAMETERS = 20  # maximum number of ranked parameters; with more, none is ranked


class RankedQuantity(NamedTuple):
    """A quantity at the truth, and at L independent posterior draws."""

    truth: float
    draws: Tensor  # [L]


Quantities = dict[str, RankedQuantity]


def compute_quantities(
    simulated: Simulated, posterior: object, n_draws: int, generator: torch.Generator
) -> Quantities:
    """All quantities of a data set that are available from the posterior.

    Raises:
        ConfigMismatchError: the posterior has nothing to rank, or too few draws.
    """
    with torch.no_grad():
        if isinstance(simulated, PriorSeries):
            quantities = _rank_series(simulated, posterior, n_draws, generator)
        else:
            quantities = _rank_labels(simulated, posterior, n_draws, generator)
    if not quantities:
        raise ConfigMismatchError(
            "inference: the posterior returns only class probabilities, but ranks of θ* or f* require draws"
        )
    return quantities


def _rank_labels(
    simulated: PriorLabels, posterior: object, n_draws: int, generator: torch.Generator
) -> Quantities:
    problem = simulated.problem
    n = problem.n
    held = posterior.draws if isinstance(posterior, ConjugatePosterior) else posterior
    if simulated.theta is not None and isinstance(held, HoldsDraws):
        theta = held.flat[thin(held, n_draws, generator).to(held.draws.device)]
        test = held.predictive(theta, problem.test.x)
        out = _rank_parameters(held, simulated.theta, theta)
        out |= _rank_predictions(simulated, test, True, generator)
        return out | _rank_log_joint(simulated, held, theta)
    function = _draw_function(
        posterior, torch.cat([problem.train.x, problem.test.x]), n_draws, generator
    )
    if function is not None:
        predictive, is_joint = function
        out = _rank_predictions(
            simulated, part_of(predictive, rows=slice(n, None)), True, generator
        )
        return out | _rank_log_likelihood(simulated, part_of(predictive, rows=slice(n)), is_joint)
    if isinstance(posterior, Predicts):
        mixture = _resample(posterior.predict(problem.test.x, generator), n_draws, generator)
        return _rank_predictions(simulated, mixture, False, generator)
    return {}


def thin(draws: HoldsDraws, n_draws: int, generator: torch.Generator) -> Tensor:
    """Rows of C·N draws [L]: evenly spaced in each chain, or resampled if the draws are weighted.

    Raises:
        ConfigMismatchError: fewer draws are stored.
    """
    chains = draws.n_chains
    kept = draws.n_draws
    if draws.log_weights is not None:
        return torch.multinomial(draws.weights.cpu(), n_draws, True, generator=generator)
    if chains * kept < n_draws:
        raise ConfigMismatchError(
            f"inference: stores {chains * kept} draws, but --draws {n_draws} are needed for ranks; "
            f"raise steps (or draws or chains of "
            "the method), or lower --draws"
        )
    each = math.ceil(n_draws / chains)
    places = kept - 1 - (torch.arange(each) * kept // each)  # the last draw is always included
    rows = (kept * torch.arange(chains)[:, None] + places).flatten()
    if len(rows) > n_draws:
        rows = rows[torch.randperm(len(rows), generator=generator)[:n_draws].sort().values]
    return rows


def _rank_parameters(draws: HoldsDraws, truth: Tensor, theta: Tensor) -> Quantities:
    """Named parameters; weights of networks are unnamed because they are not identified."""
    if not 0 < len(draws.names) <= MOST_PARAMETERS:
        return {}
    true_values = draws.constrain(truth)[0]
    values = draws.constrain(theta)
    return {
        name: RankedQuantity(float(true_values[j]), values[:, j])
        for j, name in enumerate(draws.names)
    }


def _rank_log_joint(simulated: PriorLabels, draws: HoldsDraws, theta: Tensor) -> Quantities:
    model = draws.model if isinstance(draws, Draws) else None
    assert simulated.theta is not None
    if not isinstance(model, LogJoint):
        return {}
    both = torch.cat([simulated.theta.to(theta), theta])
    value = model.log_likelihood(both, simulated.problem.train).sum(1) + model.log_prior(both)
    return {"log joint": RankedQuantity(float(value[0]), value[1:])}


def _draw_function(
    posterior: object, x: Tensor, n_draws: int, generator: torch.Generator
) -> tuple[Predictive, bool] | None:
    """p(y | f) at L draws of f at x [B, D], and True if a draw is one function for all rows.

    None if the posterior draws no functions.
    """
    module = module_of(posterior)
    if isinstance(module, GivenFunction):
        return module.predict_f(x, n_draws, generator), False
    if isinstance(posterior, Redraws):
        predictive = posterior.some(n_draws, generator).predict(x, generator)
        return (predictive, True) if len(components_of(predictive)) == n_draws else None
    return None


def _resample(predictive: Predictive, n: int, generator: torch.Generator) -> Predictive:
    """Draw n components at random with replacement."""
    n_components = len(components_of(predictive))
    if isinstance(predictive, PoissonMixture):  # unequal weights
        weights = predictive.log_weights.softmax(0)
        chosen = torch.multinomial(weights, n, replacement=True, generator=generator)
        return PoissonMixture(predictive.log_rate[chosen], torch.zeros_like(weights[chosen]))
    return part_of(predictive, torch.randint(n_components, (n,), generator=generator))


def _rank_predictions(
    simulated: PriorLabels, test: Predictive, of_functions: bool, generator: torch.Generator
) -> Quantities:
    """f(x) and a new label y(x) at each test row, for tasks or classes in turn.

    For class labels, f is the log odds relative to the first class, and y is not ranked.

    Args:
        test: L components at the test rows.
        of_functions: True if each component is one draw of f; if False, only y is ranked.
    """
    law = part_of(simulated.law, rows=slice(simulated.problem.n, None))
    y = simulated.problem.test.y
    out: Quantities = {}
    truth, f = (components_of(predictive) for predictive in (law, test))
    if isinstance(test, Categorical):  # log odds [L, B, T·(C − 1)]
        truth, f = ((x[..., 1:] - x[..., :1]).flatten(2) for x in (truth, f))
    labels = None if isinstance(test, Categorical) else sample_labels(test, generator)
    for i in range(len(y)):
        k = i % f.shape[2]
        if of_functions:
            out[f"f(x{i + 1})"] = RankedQuantity(float(truth[0, i, k]), f[:, i, k])
        if labels is not None:
            out[f"y(x{i + 1})"] = RankedQuantity(float(y[i, k]), labels[:, i, k])
    return out


def _rank_log_likelihood(simulated: PriorLabels, train: Predictive, is_joint: bool) -> Quantities:
    """Σ_b log p(y_b | f) of all training labels, or of the first row if f is drawn row by row."""
    problem = simulated.problem
    truth = _log_likelihood(part_of(simulated.law, rows=slice(problem.n)), problem.train)
    draws = _log_likelihood(train, problem.train)
    if not is_joint:
        first = int(problem.train.mask.any(1).nonzero()[0])
        return {"log p(y₁ | f)": RankedQuantity(float(truth[0, first]), draws[:, first])}
    return {"log likelihood": RankedQuantity(float(truth[0].sum()), draws.sum(1))}


def _log_likelihood(predictive: Predictive, batch: Batch) -> Tensor:
    """Σ_t log p(y_bt | component s) over observed labels, [S, B]."""
    return torch.where(batch.mask, component_log_probs(predictive, batch.y), 0.0).sum(-1)


def _rank_series(
    simulated: PriorSeries, posterior: object, n_draws: int, generator: torch.Generator
) -> Quantities:
    """θ, future observations, and log p(y | θ) if errors are Gaussian."""
    if not isinstance(posterior, StructuralDraws):
        return {}
    if n_draws > FORECASTS:
        raise ConfigMismatchError(
            f"--draws {n_draws}: series are forecast from at most {FORECASTS} draws"
        )
    rows = thin(posterior, n_draws, generator).to(posterior.draws.device)
    theta = posterior.flat[rows]
    lam = posterior.precisions
    drawn = replace(
        posterior,
        draws=theta[None],
        stats={},
        precisions=None if lam is None else lam.flatten(0, 1)[rows][None],
    )
    series = simulated.problem.series
    future = simulated.problem.future[0, :, 0]
    out = _rank_parameters(drawn, simulated.theta, theta)
    ahead = drawn.forecast(series, len(future), generator)
    labels = sample_labels(ahead, generator)
    for h in simulated.horizons:
        out[f"y in {h + 1}"] = RankedQuantity(float(future[h]), labels[:, h, 0])
    if lam is None:
        at_truth = replace(drawn, draws=simulated.theta[None].to(theta))
        value = drawn.log_likelihood(series)
        out["log likelihood"] = RankedQuantity(float(at_truth.log_likelihood(series)), value)
    return out


def rank(quantity: RankedQuantity, generator: torch.Generator) -> int:
    """Rank of the truth among L draws, 0 … L; ties are broken at random."""
    draws = quantity.draws.double().cpu()
    ties = int((draws == quantity.truth).sum())
    extra = int(torch.randint(ties + 1, (1,), generator=generator)) if ties else 0
    return int((draws < quantity.truth).sum()) + extra
