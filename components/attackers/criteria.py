"""What an attack lowers for the true class, and raises for a target: functions of a predictive and of class numbers.

Class numbers y are [B, T], negative where a label is missing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.predictive import Categorical
from components.contracts.victim import Criterion
from components.trouble import Misfit

TINY = 1e-12


def summed(predictive: Categorical, y: Tensor) -> Tensor:
    """Σ_t log p(y_t) over the observed labels y [B, T]; a missing one is negative. [B]"""
    return torch.where(y >= 0, predictive.log_prob(y.clamp_min(0)), 0.0).sum(-1)


def summed_slope(predictive: Categorical, y: Tensor) -> Tensor:
    """∂/∂f of Σ_b Σ_t log p(y_bt), written out: [S, B, T, C] like the logits f.

    ∂/∂f_sc log S⁻¹ Σ_s softmax(f_s)_y = w_s (1[c = y] − softmax(f_s)_c),  w_s = softmax(f_s)_y / Σ_s' softmax(f_s')_y."""
    each = predictive.logits.log_softmax(-1)  # [S, B, T, C]
    label, weight = y.clamp_min(0)[None, ..., None], (y >= 0).to(each)[None, ..., None]  # [1, B, T, 1]
    if len(each) > 1:
        label = label.expand(*each.shape[:-1], 1)
        own = each.gather(-1, label)  # log softmax(f_s)_y
        weight = weight * (own - own.logsumexp(0)).exp()  # [S, B, T, 1]
    return each.exp_().mul_(weight).neg_().scatter_add_(-1, label, weight)


def misjudged(predictive: Categorical, y: Tensor) -> Tensor:
    """Whether some observed label y [B, T] is not the class of largest probability. [B]"""
    return ((predictive.guess != y) & (y >= 0)).any(-1)


def margins(predictive: Categorical, y: Tensor) -> Tensor:
    """min_t [log p(y_t) − max_{c≠y_t} log p(c)] over the observed labels y [B, T]: negative where one is misjudged. [B]

    A softmax's log-probabilities differ from its logits by a constant, so these are the margins between logits."""
    return _least(_gaps(predictive.log_probs, y), y)


def ratios(predictive: Categorical, y: Tensor) -> Tensor:
    """min_t (z_y − max_{c≠y} z_c)/(z_π1 − z_π3) over the observed labels y [B, T], z the log-probabilities. [B]

    π orders the classes of an input from the largest z: minus the difference-of-logits ratio, which neither a shift of
    the logits changes nor a scale, so that a confident network's gradient does not vanish.  Of a softmax, differences of
    log-probabilities are those of its logits.

    Raises:
        Misfit: there are fewer than three classes.

    Source: Croce and Hein (2020), eq. (6)."""
    log_probs = predictive.log_probs
    if log_probs.shape[-1] < 3:
        raise Misfit("attacker.criterion: dlr compares the first class with the third, and there are two; use margin")
    top = log_probs.topk(3, -1).values
    spread = (top[..., 0] - top[..., 2]).clamp_min(TINY)  # zero where the three are equal, and so are the gaps
    return _least(_gaps(log_probs, y) / spread, y)


def _gaps(log_probs: Tensor, y: Tensor) -> Tensor:
    """log p(y_t) − max_{c≠y_t} log p(c) [B, T]."""
    label = y.clamp_min(0).unsqueeze(-1)
    others = log_probs.scatter(-1, label, -torch.inf).amax(-1)
    return log_probs.gather(-1, label).squeeze(-1) - others


def _least(values: Tensor, y: Tensor) -> Tensor:
    """The smallest of values [B, T] over the observed labels y; 0 for a row that has none. [B]"""
    seen = y >= 0
    least = torch.where(seen, values, torch.inf).amin(-1)
    return torch.where(seen.any(-1), least, 0.0)


# What an attack lowers for the true class (and raises for a target).
CRITERIA: dict[Criterion, Callable[[Categorical, Tensor], Tensor]] = {
    "cross_entropy": summed,
    "margin": margins,
    "dlr": ratios,
}
