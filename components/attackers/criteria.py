"""Criteria that an attack lowers for the true class, or raises for a target class.

They are functions of a predictive and of class numbers y [B, T], negative if missing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.predictive import Categorical
from components.contracts.victim import Criterion, NormName
from components.errors import ConfigMismatchError

# Rows with a ``certainty`` above this value (in nats) are tempered, because single precision rounds
# p(y|x) to 1.  Below, the gradient is the usual one.
CERTAIN = 16.0
# Largest excess in nats of a member's ``certainty`` over its ensemble's without tempering; the
# member then has about e^-4 = 2 % of the gradient.  For 20 SGLD networks of digits, the accuracy
# under PGD in L∞ is 0.60 without tempering, and 0.51, 0.40, 0.36 and 0.35 with 16, 8, 4 and 2.
SURER = 4.0
# Standard deviation over classes of the logits of a tempered row, in nats; networks for digits have
# 3 to 18.  With half of this value, robust accuracies in L∞ of networks with identical decisions
# differ by 0.05; with this value by at most 0.01 in every norm.
SPREAD = 4.8
# Largest difference of tempered logits, in nats: for 1,000 classes with one large logit the
# standard deviation is 1/32 of it, and e^-104 is 0 in single precision.
RANGE = 64.0
LOG_ODDS_CUTOFF = 30.0  # log-odds above which log(1 + e^-o) equals e^-o in float64


def log_likelihood(predictive: Categorical, y: Tensor, other: Tensor | None = None) -> Tensor:
    """Σ_t log p(y_t) over the observed labels y [B, T]; a missing one is negative. [B]

    Like the other criteria it is −∞ if the predictive is not finite.  Towards other classes [B, T]
    it is minus their ``certainty``."""
    if other is not None:
        return -certainty(predictive, torch.where(y >= 0, other, -1))
    total = torch.where(y >= 0, predictive.log_prob(y.clamp_min(0)), 0.0).sum(-1)
    return torch.where(total.isnan(), -torch.inf, total)


def certainty(predictive: Categorical, y: Tensor) -> Tensor:
    """−log(−Σ_t log p(y_t)) over the observed labels y [B, T]; 0 for a row without labels. [B]

    It orders inputs like Σ_t log p(y_t), and distinguishes them even if all of these round to 0:
    with the log-odds o_t = log p(y_t) − log(1 − p(y_t)), −log p(y_t) = log(1 + e^{−o_t}), which is
    e^{−o_t} for large o_t."""
    each = predictive.logits.log_softmax(-1)  # [S, B, T, C]
    label = y.clamp_min(0)[None, ..., None].expand(*each.shape[:-1], 1)
    label_log_prob = each.gather(-1, label).squeeze(-1).logsumexp(0)  # log S p(y_t) [B, T]
    odds = label_log_prob - each.scatter(-1, label, -torch.inf).logsumexp(-1).logsumexp(0)
    log_loss = torch.where(
        odds > LOG_ODDS_CUTOFF,
        -odds,
        torch.nn.functional.softplus(-odds.clamp_max(LOG_ODDS_CUTOFF)).log(),
    )
    total = torch.where(y >= 0, log_loss, -torch.inf).logsumexp(-1)
    return torch.where((y >= 0).any(-1), -total, 0.0).nan_to_num(-torch.inf, torch.inf, -torch.inf)


def soften_logits(predictive: Categorical, y: Tensor, norm: NormName) -> Categorical:
    """The predictive with logits [S, B, T, C] tempered in rows that are certain of y [B, T], and in
    members that are much more certain than their ensemble, because their gradients would vanish.

    The largest standard deviation over classes of such a row becomes at most ``SPREAD``.  An
    attack in L1 uses only the largest derivatives and is not weakened by a common standard
    deviation of logits: all rows get it, so that networks with identical decisions are attacked in
    the same way.
    """
    logits = predictive.logits
    factor = torch.minimum(
        SPREAD / logits.std(-1), RANGE / (logits.amax(-1) - logits.amin(-1))
    ).amin(2)  # [S, B]
    if norm == "l1":
        factor = factor.amin(0, keepdim=True).clamp_max(1e20)  # for equal logits
    else:
        of_row = certainty(predictive, y)
        is_tempered = of_row > CERTAIN
        if len(logits) > 1:
            members = Categorical(logits.flatten(0, 1)[None])
            of_member = certainty(members, y.repeat(len(logits), 1)).view_as(factor)
            is_tempered = is_tempered | (of_member - of_row > SURER)
        factor = torch.where(is_tempered, factor.clamp_max(1.0), 1.0)
    return Categorical(logits * factor[..., None, None])


def log_likelihood_logit_gradient(
    predictive: Categorical, y: Tensor, soften: NormName | None
) -> Tensor:
    """∂/∂f of Σ_b Σ_t log p(y_bt) in closed form: [S, B, T, C], like the logits f.

    ∂/∂f_sc log S⁻¹ Σ_s softmax(f_s)_y = w_s (1[c = y] − softmax(f_s)_c),
    w_s = softmax(f_s)_y / Σ_s' softmax(f_s')_y.  1 − softmax(f_s)_y is computed as Σ_{c≠y}
    softmax(f_s)_c, which is accurate for softmax(f_s)_y near 1.

    ``soften`` tempers f for attacks in that norm (``soften_logits``), so that networks with
    identical decisions, which differ by a factor in their last layer, have nearly equal robust
    accuracies.  Otherwise the cross entropy of the more confident network rounds to 0 and its
    gradient vanishes: the network only appears robust.  In tempered rows the direction is the
    gradient of a softened log p(y|x), which gives more weight to classes other than the nearest;
    rows near the decision boundary have the gradient of log p(y|x) itself.

    Source: Carlini and Wagner (2016), who divide the logits of a defended network by a
    temperature; Carlini and Wagner (2017), section V.B, and Croce and Hein (2020), section
    4, on the scale of logits and cross entropy; CleverHans, pull request 1175, on gradients
    below the least length that a normalisation expects.
    """
    # [S, B, T, C]
    each = (soften_logits(predictive, y, soften) if soften else predictive).logits.log_softmax(-1)
    label = y.clamp_min(0)[None, ..., None]
    weight = (y >= 0).to(each)[None, ..., None]  # [1, B, T, 1]
    label = label.expand(*each.shape[:-1], 1)
    if len(each) > 1:
        label_term = each.gather(-1, label)  # log softmax(f_s)_y
        weight = weight * (label_term - label_term.logsumexp(0)).exp()  # [S, B, T, 1]
    slope = each.exp_().mul_(weight).neg_().scatter_(-1, label, 0.0)
    return slope.scatter(-1, label, -slope.sum(-1, keepdim=True))


def is_misclassified(predictive: Categorical, y: Tensor) -> Tensor:
    """True for each row with an observed label y [B, T] that is not the most probable class.

    Returns:
        [B] bool.
    """
    return ((predictive.guess != y) & (y >= 0)).any(-1)


def margins(predictive: Categorical, y: Tensor, other: Tensor | None = None) -> Tensor:
    """min_t [log p(y_t) − max_{c≠y_t} log p(c)] over the observed labels y [B, T]: negative if one
    is misclassified. [B]

    With one other class c [B, T] per label: min_t [log p(y_t) − log p(c_t)].  For a softmax,
    log-probabilities differ from logits by a constant, so these are the margins between logits."""
    return _min_over_observed(_log_probability_gaps(_scores(predictive), y, other), y)


def dlr_margins(predictive: Categorical, y: Tensor, other: Tensor | None = None) -> Tensor:
    """min_t (z_y − max_{c≠y} z_c)/(z_π1 − z_π3) over the observed labels y [B, T]: [B].

    z are log-probabilities and π orders the classes of an input from the largest z.  This
    is minus the difference-of-logits ratio, which is invariant to shifts and scales of the
    logits, so the gradient of a confident network does not vanish.  For a softmax,
    differences of log-probabilities are differences of its logits.

    With one other class c [B, T] per label it is min_t (z_y − z_c)/(z_π1 − (z_π3 + z_π4)/2);
    with three classes (z_π3 + z_π4)/2 is z_π3, with two it is z_π2.

    Raises:
        ConfigMismatchError: there are fewer than three classes, and no other class is given.

    Source: Croce and Hein (2020), eqs. (6) and (7).
    """
    scores = _scores(predictive)
    classes = scores.shape[-1]
    if other is None and classes < 3:
        raise ConfigMismatchError(
            "attacker.criterion: dlr requires at least three classes; use margin"
        )
    top = scores.topk(3 if other is None else min(4, classes), -1).values
    spread = top[..., 0] - top[..., min(2, classes - 1) :].mean(-1)
    # zero if all are equal, like the gaps
    spread = spread.clamp_min(torch.finfo(spread.dtype).tiny)
    return _min_over_observed(_log_probability_gaps(scores, y, other) / spread, y)


def _scores(predictive: Categorical) -> Tensor:
    """Log-probabilities [B, T, C] up to a constant per row and task; for a single softmax the
    logits, without rounding."""
    return predictive.logits[0] if len(predictive.logits) == 1 else predictive.log_probs


def _log_probability_gaps(log_probs: Tensor, y: Tensor, other: Tensor | None) -> Tensor:
    """log p(y_t) − max_{c≠y_t} log p(c), or − log p(c_t) for one other class [B, T]."""
    label = y.clamp_min(0).unsqueeze(-1)
    if other is None:
        rest = log_probs.scatter(-1, label, -torch.inf).amax(-1)
    else:
        rest = log_probs.gather(-1, other.clamp_min(0).unsqueeze(-1)).squeeze(-1)
    return log_probs.gather(-1, label).squeeze(-1) - rest


def _min_over_observed(values: Tensor, y: Tensor) -> Tensor:
    """The smallest of values [B, T] over the observed labels y; 0 for a row without labels. [B]"""
    is_observed = y >= 0
    least = torch.where(is_observed, values, torch.inf).amin(-1)
    least = torch.where(least.isnan(), -torch.inf, least)
    return torch.where(is_observed.any(-1), least, 0.0)


def next_classes(predictive: Categorical, y: Tensor, count: int) -> list[Tensor]:
    """The ``count`` most likely classes except the true one y [B, T], in order, [B, T] each.

    Fewer if there are fewer other classes."""
    scores = predictive.log_probs
    others = scores.scatter(-1, y.clamp_min(0).unsqueeze(-1), -torch.inf)
    return list(others.topk(min(count, scores.shape[-1] - 1), -1).indices.unbind(-1))


# Quantity lowered for the true class (and raised for a target), against all other classes or
# towards one of them for each label: (predictive, y, None or these).
CRITERIA: dict[Criterion, Callable[..., Tensor]] = {
    "cross_entropy": log_likelihood,
    "margin": margins,
    "dlr": dlr_margins,
}

# The same order of inputs, on a scale that resolves values of a confident network, for selecting
# the better of two inputs.
RANKS: dict[Criterion, Callable[[Categorical, Tensor], Tensor]] = CRITERIA | {
    "cross_entropy": certainty
}
