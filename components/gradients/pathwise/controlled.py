"""Control variates that are polynomials or radial functions of Gaussian base noise, and shared code
of the estimators that use them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import NormalNoise
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.gradients.by_parameter import Estimate, as_gradients, flat
from components.gradients.learnt import Learnt
from components.gradients.pathwise.bound import row_gradients, whole_gradient

Objective = Literal["squared_difference", "gradient_sum", "partial_gradients"]
Unit = Literal["scale", "one"]
M = TypeVar("M", bound=NormalNoise[RowBatch])
S = TypeVar("S", bound=Learnt[Any])


def moment(k: int) -> int:
    """E ε^k, ε ~ N(0, 1): (k − 1)!! for even k, 0 for odd k."""
    return 0 if k % 2 else math.prod(range(1, k, 2))


def basis(noise: Tensor, order: int, radial: int = 0) -> Tensor:
    """(ε^k − E ε^k)_{k = 1…K}, (φ_j − E φ_j)_{j = 1…J}, φ_j = exp(−½ (ε − μ_j)²): [..., (K + J)·D].

    The centres μ_j are evenly spaced on [−2, 2]; E φ_j = exp(−μ_j²/4)/√2.
    """
    parts = [noise.pow(k) - moment(k) for k in range(1, order + 1)]
    for mu in torch.linspace(-2, 2, radial).tolist():
        parts.append((-0.5 * (noise - mu).square()).exp() - math.exp(-(mu**2) / 4) / 2**0.5)
    return torch.cat(parts, -1)


def control_variates(noise: Tensor, order: int, radial: int = 0) -> Tensor:
    """w(ε), mean of S draws of ``basis``: ε [S, B, D] -> [B, (K + J)·D], each of mean 0.

    Source: Boustati (2021), eqs. (4.17), (4.19)-(4.21), and section 4.7 for radial functions."""
    return basis(noise, order, radial).mean(0)


def spread(objective: Objective, gradient: Tensor, rows: Tensor | None, fitted: Tensor) -> Tensor:
    """Σ_p Ṽ_p [], with mean Tr Cov[G̃] up to a constant.

    The arguments are Ĝ [P], ĝ_b [B, P] and h_b = c_bᵀ w(ε_b) [B, P].  With
    h_b = d_b + c_bᵀ w(ε_b) the mean differs only by a term in d: w has mean 0, so that c*
    is unchanged.

    Source: Boustati (2021), eqs. (4.10) partial_gradients, (4.14) gradient_sum, (4.15)
    squared_difference.
    """
    if objective == "squared_difference":
        return (gradient - fitted.sum(0)).square().sum()
    target = gradient if objective == "gradient_sum" else rows
    assert target is not None
    return (fitted.square() - 2 * target * fitted).sum()


@dataclass(frozen=True)
class DrawResults:
    """Results for one draw of the noise, from which coefficients learn after it has been used."""

    unit: float  # unit of the coefficients
    w: Tensor  # [B, K·D]
    shared: bool  # True if all rows share one draw
    gradient: Tensor  # Ĝ [P]
    rows: Tensor | None  # ĝ_b [B, P], only for partial_gradients
    fitted: Tensor  # d_b + c_bᵀ w(ε_b) [B, P], differentiable in the learned parameters


class ControlVariateGradient(Gradient[M, RowBatch, S]):
    """An estimator that subtracts a control variate for each row from the reparameterisation
    gradient.

    Raises:
        ConfigMismatchError: rows share their noise, but the objective treats the variance of their
        sum as a sum of variances."""

    requires = Requirements(capabilities={NormalNoise})
    unbiased = True

    n_samples: PositiveInt

    order: PositiveInt
    radial: NonNegativeInt
    objective: Objective
    unit: Unit

    def coefficients(self, module: M, batch: RowBatch, state: S) -> tuple[Tensor, Tensor | None]:
        """c_b in its unit [B or 1, P, K·D], differentiable in the learned parameters; and d_b [B or
        1, P], the estimated mean of ĝ_b, used only in learning c_b."""
        raise NotImplementedError

    def learn(self, state: S, results: DrawResults) -> S:
        state.optimizer.descend(
            spread(self.objective, results.gradient, results.rows, results.fitted)
        )
        return state

    def estimate(self, module: M, batch: RowBatch, rng: Rng, state: S) -> Estimate[S]:
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        shared = noise.shape[1] > 1 and noise.stride(1) == 0
        if shared and self.objective != "squared_difference":
            raise ConfigMismatchError(
                f"objective={self.objective} of {self.name} assumes independent rows, but they "
                f"share their noise; set "
                "inference.noise=rows, or objective=squared_difference"
            )
        parameters = list(module.parameters())
        rows = None
        if self.objective == "partial_gradients":
            rows, raw_gradients, terms = row_gradients(module, batch, noise)
        else:
            raw_gradients, terms = whole_gradient(module, batch, noise)
        w = control_variates(noise, self.order, self.radial)
        gradient = flat(raw_gradients, parameters)
        unit = batch.scale if self.unit == "scale" else 1.0
        c, level = self.coefficients(module, batch, state)
        # c_bᵀ w(ε_b), row by row
        corrections = unit * torch.einsum("bpk,bk->bp", c.expand(len(w), -1, -1), w)
        controlled = as_gradients(gradient - corrections.detach().sum(0), raw_gradients, module)
        # update after use: c must be independent of the noise that it corrects
        fitted = corrections if level is None else corrections + unit * level
        state = self.learn(state, DrawResults(unit, w, shared, gradient, rows, fitted))
        return controlled, terms, state
