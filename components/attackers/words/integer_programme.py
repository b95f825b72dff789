"""Dalvi's minimum-cost attack on naive Bayes, one integer programme a mail."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import Generative
from components.contracts.posteriors import Defends, HoldsFit, Predicts
from components.errors import ConfigMismatchError

# by how much the log odds are brought below the threshold, so that rounding does not undo the
# attack
LOG_ODDS_SLACK = 1e-9


def unwrap_naive_bayes(posterior: Predicts) -> tuple[Generative, dict[str, Tensor]]:
    """The generative classifier and its fit, of a posterior or of the one under its defence.

    Raises:
        ConfigMismatchError: it is not a generative classifier.
    """
    bare = posterior.undefended if isinstance(posterior, Defends) else posterior
    if not isinstance(bare, HoldsFit) or not isinstance(bare.estimator, Generative):
        raise ConfigMismatchError(
            "attacker=dalvi: needs p(x_i|y), which naive Bayes alone has; choose model=naive_bayes"
        )
    return bare.estimator, bare.fitted


def falls(estimator: Generative, fitted: dict[str, Tensor], x: Tensor) -> Tensor:
    """log p(x_i|y_1)/p(x_i|y_2) − log p(x'_i|y_1)/p(x'_i|y_2) of flipping each word of x [B, D],
    [B, D]."""
    here, flipped = (estimator.log_features(fitted, z) for z in (x, 1 - x))  # [B, 2, D]
    return (here[:, 1] - here[:, 0]) - (flipped[:, 1] - flipped[:, 0])


def cheapest(gain: np.ndarray, gap: float, cost: np.ndarray, most: int) -> np.ndarray | None:
    """δ [D] ∈ {0, 1} of least Σ_i c_i δ_i with Σ_i gain_i δ_i ≥ gap and Σ_i δ_i ≤ most.

    A cost of ∞ forbids a change.

    Returns:
        δ, or None if there is no solution.

    Source: Gallego (2021), eq. (3.4); Dalvi et al. (2004), section 3.
    """
    # half a second, needed only by this attack
    from scipy.optimize import Bounds, LinearConstraint, milp

    allowed = np.isfinite(cost)
    if np.sort(np.where(allowed, gain, 0).clip(0))[::-1][:most].sum() < gap:
        return None  # the sum of the largest gains is not enough
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
    """a(x): x [B, D] with the cheapest changes, at most ``most``, after which it is taken for
    innocent.

    A mail that is taken for innocent anyway, or cannot be made so, stays as it is."""
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
