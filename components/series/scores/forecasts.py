"""Scores of distributional forecasts of numbers, and of class forecasts."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.predictive import Categorical, GaussianMixture
from components.metrics.crps import crps

NODES = 4500  # total quadrature nodes over all components of a mixture
FEWEST = 9
MOST = 99  # nodes of one component


def entropy(predictive: GaussianMixture) -> Tensor:
    """Entropy −∫ p log p of each mixture, in nats [B, T].

    It is ½ log 2πe v for one component. For S components it is the mean over components of
    E[−log p] by Gauss–Hermite quadrature, with nodes scaled to the width of the component.
    """
    mu = predictive.mu
    v = predictive.v
    if len(mu) == 1:
        return 0.5 * (2 * math.pi * math.e * v[0]).log()
    x, w = np.polynomial.hermite_e.hermegauss(min(MOST, max(FEWEST, NODES // len(mu))))
    nodes, weights = (torch.from_numpy(each).to(mu) for each in (x, w / w.sum()))
    total = torch.zeros_like(mu[0])
    for b in range(len(total)):  # all rows together would need S × NODES × B nodes
        forecast = GaussianMixture(mu[:, b : b + 1], v[:, b : b + 1])  # [S, 1, T]
        y = forecast.mu + forecast.v.sqrt() * nodes.unsqueeze(1)  # [S, n, T]
        log_p = forecast.log_prob(y.flatten(0, 1)).view_as(y)
        total[b] = -torch.einsum("n,snt->t", weights, log_p) / len(y)
    return total


def interval_score(lower: Tensor, upper: Tensor, y: Tensor, alpha: float) -> Tensor:
    """(u − l) + 2/α (l − y) 1{y < l} + 2/α (y − u) 1{y > u}; smaller is better.

    Source: Gneiting and Raftery (2007), eq. (43)."""
    return (upper - lower) + (2 / alpha) * ((lower - y).clamp_min(0) + (y - upper).clamp_min(0))


def of_numbers(predictive: GaussianMixture, y: Tensor) -> dict[str, float]:
    """Scores of y [B, T] (NaN: not observed), averaged over the observed values: absolute error of
    the predictive mean, predictive entropy, interval score and coverage of the central 95 %
    interval, interval score of mean ± 2 sd, CRPS and log density."""
    check_shape("the forecasts", predictive.mu, None, *y.shape)
    is_observed = ~y.isnan()
    y = torch.where(is_observed, y, predictive.mean)
    lower = predictive.quantile(0.025)
    upper = predictive.quantile(0.975)
    mean = predictive.mean
    sd = predictive.variance.sqrt()
    each = {
        "mae": (y - mean).abs(),
        "predictive_entropy": entropy(predictive),
        "interval_score": interval_score(lower, upper, y, 0.05),
        "interval_score_2sd": interval_score(mean - 2 * sd, mean + 2 * sd, y, 0.05),
        "coverage95": ((y >= lower) & (y <= upper)).to(y.dtype),
        "crps": crps(predictive, y),
        "log_score": predictive.log_prob(y),
    }
    return {name: float(value[is_observed].mean()) for name, value in each.items()}


def score_class_forecasts(predictive: Categorical, y: Tensor) -> dict[str, float]:
    """Scores of class numbers y [B, T] (NaN: not observed), averaged over the observed values:
    accuracy of the most probable class, predictive entropy and log probability, in nats."""
    check_shape("the forecasts", predictive.logits, None, *y.shape, None)
    is_observed = ~y.isnan()
    label = y.nan_to_num(0.0).long()
    each = {
        "accuracy": (predictive.guess == label).to(y.dtype),
        "predictive_entropy": predictive.entropy,
        "log_score": predictive.log_prob(label),
    }
    return {name: float(value[is_observed].mean()) for name, value in each.items()}
