"""Bounds of a classifier's margins between classes over the inputs that an attack may reach."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from components.maths.intervals import Perturbations as Perturbations


class MarginBounds(NamedTuple):
    """Lower bounds of f_y − f_c for K networks, and lower and upper bounds of their logits f."""

    lower: Tensor  # [K, B, T, C]; infinite where c = y
    low: Tensor  # [K, B, T, C]
    high: Tensor  # [K, B, T, C]
    unit: float  # unit roundoff of the format in which the networks are computed

    def certified(self) -> Tensor:
        """True for rows that keep the label y for every input in the set [B, T] bool.

        One network: f_y > f_c for every c.  The mean predictive of K networks:
        K⁻¹ Σ_k (p_ky − p_kc) > 0, by more than the rounding of K log-probabilities.
        """
        if len(self.lower) == 1:
            return (self.lower[0] > 0).all(-1)
        largest = torch.maximum(self.low.abs(), self.high.abs()).amax((0, 3))
        rounding = 64 * self.unit * (1 + largest)
        difference = self.probability_differences().mean(0)
        is_y = self.lower[0] == torch.inf
        return ((difference > rounding.unsqueeze(-1)) | is_y).all(-1)

    def probability_differences(self) -> Tensor:
        """Lower bounds of p_y − p_c of every network [K, B, T, C], the larger of two bounds.

        The first uses p_y − p_c = (p_y + p_c) tanh((f_y − f_c)/2): tanh(m/2) if the bound m of f_y
        − f_c is negative, otherwise p_y (1 − e^{−m}).  The second is a lower bound of p_y, 1/(1 +
        Σ_{c≠y} e^{−m_c}), minus an upper bound of p_c, with f_c at its upper and the other logits
        at their lower bounds.
        """
        m = self.lower
        p_y = 1 / (1 + (-m).exp().sum(-1, keepdim=True))  # the infinite m of c = y contributes zero
        diagonal = torch.eye(m.shape[-1], dtype=torch.bool, device=m.device)
        others = self.low.unsqueeze(-2).masked_fill(diagonal, -torch.inf).logsumexp(-1)
        p_c = (self.high - others).sigmoid()
        by_tanh = torch.where(m < 0, (m / 2).tanh(), p_y * -(-m).expm1())
        return torch.maximum(by_tanh, p_y - p_c)


class BoundsMargins:
    """Base of classifiers that bound their margins over all inputs that an attack may reach."""

    def margin_bounds(self, parameters: Any, y: Tensor, inputs: Perturbations) -> MarginBounds:
        """Lower bounds of f_y − f_c over all inputs.

        Args:
            parameters: θ [K, P], or the fit of an estimator; None for the module's own weights.
            y: class numbers [B, T], negative where missing.
            inputs: set of inputs that an attack may reach from the B rows.
        """
        raise NotImplementedError
