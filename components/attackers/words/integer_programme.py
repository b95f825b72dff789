"""Dalvi's minimum-cost attack on naive Bayes, with one integer programme per email."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import Generative
from components.contracts.posteriors import Defends, HoldsFit, Predicts
from components.errors import ConfigMismatchError

# margin of the log odds below the threshold, against rounding errors
LOG_ODDS_SLACK = 1e-9


def unwrap_naive_bayes(posterior: Predicts) -> tuple[Generative, dict[str, Tensor]]:
    """The generative classifier and its fit, from a posterior or from the model under its defence.

    Raises:
        ConfigMismatchError: the model is not a generative classifier.
    """
    bare = posterior.undefended if isinstance(posterior, Defends) else posterior
    if not isinstance(bare, HoldsFit) or not isinstance(bare.estimator, Generative):
        raise ConfigMismatchError(
            "attacker=dalvi: requires p(x_i|y), provided only by naive Bayes; choose model=naive_bayes"
        )
    return bare.estimator, bare.fitted


def falls(estimator: Generative, fitted: dict[str, Tensor], x: Tensor) -> Tensor:
    """log p(x_i|y_1)/p(x_i|y_2) − log p(x'_i|y_1)/p(x'_i|y_2) for flips of each word of x [B, D],
    [B, D]."""
    current, flipped = (estimator.log_features(fitted, z) for z in (x, 1 - x))  # [B, 2, D]
    return (current[:, 1] - current[:, 0]) - (flipped[:, 1] - flipped[:, 0])


def cheapest(gain: np.ndarray, gap: float, cost: np.ndarray, most: int) -> np.ndarray | None:
    """δ [D] ∈ {0, 1} with least Σ_i c_i δ_i subject to Σ_i gain_i δ_i ≥ gap and Σ_i δ_i ≤ most.

    A cost of ∞ forbids a change.

    Returns:
        δ, or None if there is no solution.

    Source: Gallego (2021), eq. (3.4); Dalvi et al. (2004), section 3.
    """
    # takes half a second and is needed only by this attack
    from scipy.optimize import Bounds, LinearConstraint, milp

    allowed = np.isfinite(cost)
    if np.sort(np.where(allowed, gain, 0).clip(0))[::-1][:most].sum() < gap:
        return None  # the largest gains are insufficient
    result = milp(
        np.where(allowed, cost, 0.0),
        integrality=np.ones(len(gain)),
        bounds=Bounds(0, allowed.astype(float)),
        constraints=[
            LinearConstraint(gain[None], lb=gap),
            LinearConstraint(np.ones((1, len(gain))), ub=most),
        ],
    )
    return None if result.x is None else result.x.round()


def minimum_cost_attack(
    posterior: Predicts, x: Tensor, insertion: float, removal: float | None, most: int
) -> Tensor:
    """a(x): x [B, D] with the cheapest changes, at most ``most``, that make it classified as
    innocent.

    Emails already classified as innocent, or without a solution, stay unchanged."""
    estimator, fitted = unwrap_naive_bayes(posterior)
    gain = falls(estimator, fitted, x).double().cpu().numpy()
    joint = estimator.log_class(fitted) + estimator.log_conditional(fitted, x)
    gap = (joint[:, 1] - joint[:, 0]).double().cpu().numpy()
    is_present = x.cpu().numpy() > 0.5
    cost = np.where(is_present, np.inf if removal is None else removal, insertion)
    out = x.clone()
    for b in range(len(x)):
        if gap[b] > 0:
            delta = cheapest(gain[b], gap[b] + LOG_ODDS_SLACK, cost[b], most)
            if delta is not None:
                flip = torch.from_numpy(delta > 0).to(x.device)
                out[b] = torch.where(flip, 1 - x[b], x[b])
    return out
