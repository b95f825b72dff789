"""Scores of forecasts: of numbers, by their whole distribution, and of classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.predictive import Categorical, GaussianMixture
from components.metrics.crps import crps

POINTS = 2001  # of the grid on which the entropy of a mixture is summed
REACH = 8.0  # standard deviations of the outermost components that the grid goes beyond their means


def entropy(predictive: GaussianMixture) -> Tensor:
    """−∫ p log p of each mixture, in nats [B, T]: ½ log 2πe v of one component, otherwise by the trapezium rule."""
    mu, v = predictive.mu, predictive.v
    if len(mu) == 1:
        return 0.5 * (2 * math.pi * math.e * v[0]).log()
    low, high = (mu - REACH * v.sqrt()).amin(0), (mu + REACH * v.sqrt()).amax(0)  # [B, T]
    total = torch.zeros_like(low)
    for b in range(low.shape[0]):  # a grid for all would be S × POINTS × B
        steps = torch.linspace(0, 1, POINTS, dtype=mu.dtype, device=mu.device).unsqueeze(1)
        y = low[b] + (high[b] - low[b]) * steps  # [POINTS, T]
        log_p = GaussianMixture(mu[:, b : b + 1], v[:, b : b + 1]).log_prob(y)
        total[b] = torch.trapezoid(-log_p.exp() * log_p, y, dim=0)
    return total


def interval_score(lower: Tensor, upper: Tensor, y: Tensor, alpha: float) -> Tensor:
    """(u − l) + 2/α (l − y) 1{y < l} + 2/α (y − u) 1{y > u}, small is good.

    Source: Gneiting and Raftery (2007), eq. (43)."""
    return (upper - lower) + (2 / alpha) * ((lower - y).clamp_min(0) + (y - upper).clamp_min(0))


def of_numbers(predictive: GaussianMixture, y: Tensor, alpha: float = 0.05) -> dict[str, float]:
    """Means over what is observed of y [B, T] (NaN: not observed): absolute error of the predictive mean, predictive entropy,
    interval score and coverage of the central 95 % interval, the same score of mean ± 2 sd, CRPS and log density."""
    there = ~y.isnan()
    y = torch.where(there, y, predictive.mean)
    lower, upper = predictive.quantile(alpha / 2), predictive.quantile(1 - alpha / 2)
    mean, sd = predictive.mean, predictive.variance.sqrt()
    each = {
        "mae": (y - mean).abs(),
        "predictive_entropy": entropy(predictive),
        "interval_score": interval_score(lower, upper, y, alpha),
        "interval_score_2sd": interval_score(mean - 2 * sd, mean + 2 * sd, y, alpha),
        "coverage95": ((y >= lower) & (y <= upper)).to(y.dtype),
        "crps": crps(predictive, y),
        "log_score": predictive.log_prob(y),
    }
    return {name: float(value[there].mean()) for name, value in each.items()}


def of_classes(predictive: Categorical, y: Tensor) -> dict[str, float]:
    """Means over what is observed of class numbers y [B, T] (NaN: not observed): accuracy of the most probable class,
    predictive entropy and log probability, in nats."""
    there = ~y.isnan()
    label = y.nan_to_num(0.0).long()
    each = {
        "accuracy": (predictive.guess == label).to(y.dtype),
        "predictive_entropy": predictive.entropy,
        "log_score": predictive.log_prob(label),
    }
    return {name: float(value[there].mean()) for name, value in each.items()}
