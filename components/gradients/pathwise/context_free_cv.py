"""Control variates with one coefficient for all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from numpy.polynomial.hermite_e import hermegauss
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities import NormalNoise, RowContext
from components.contracts.problems import RowBatch
from components.contracts.roles import BetweenZeroAndOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.gradients.learnt import Learnt
from components.gradients.pathwise.controlled import (
    ControlVariateGradient,
    DrawResults,
    basis,
    moment,
)
from components.maths.optimizers import Adam
from components.registry import register

NODES = 60  # quadrature points for covariances with radial functions


class Coefficient(nn.Module):
    """c [P, K·D] for all rows, in its unit; initially 0."""

    def __init__(self, zeros: Tensor):
        super().__init__()
        self.c = nn.Parameter(zeros)


@dataclass
class Averages(Learnt[Coefficient]):
    """c, and the statistics from which it is learned."""

    mean: Tensor  # running sum of weighted Ĝ [P]
    weight: Tensor  # weight of the running mean []
    cross: Tensor  # running sum of weighted (Ĝ − mean) w̄ᵀ Cov[w̄]⁻¹ [P, K·D]
    seen: Tensor  # weight of the running cross moment []


@register("gradient", "context_free_cv")
class ContextFreeCV(ControlVariateGradient[NormalNoise[RowBatch], Averages]):
    """Context-free control variate: a polynomial of the noise and ``radial`` functions exp(−½ (ε −
    μ_j)²) of each coordinate minus their means correct the gradient, with the same coefficients for
    all rows.

        G̃_p = Ĝ_p − c_pᵀ W,   W = Σ_b w(ε_b),   w(ε) = (ε^k − E ε^k)_{k = 1…K},   ε_b ~ N(0, I_D)
        adam:            c ← c − lr · Adam(∇_c Σ_p Ṽ_p)
        moving_average:  c_p = Ê[(Ĝ_p − ḡ_p) Wᵀ] Cov[W]⁻¹,   Ê and ḡ exponentially weighted, Cov[W] known
                         or, with partial_gradients, Ê[B⁻¹ Σ_b (ĝ_bp − ḡ_p/B) w(ε_b)ᵀ] Cov[w]⁻¹,
                         which varies less

    c [P, K·D] is used before it is updated with this noise, and is initially 0.  c* = Cov[Ĝ, W]
    Cov[W]⁻¹ is optimal among control variates of this form; it also minimises Ṽ of ``objective``.

    Raises:
        ConfigMismatchError: rows share their noise and ``objective`` requires that they do not, or
        it requires single rows and there are none.

    Source: Boustati (2021), section 4.6.1 and eqs. (4.14), (4.15); Paisley, Blei and Jordan (2012),
    eq. (12), for c*."""

    solver: Literal["adam", "moving_average"]
    lr: PositiveFloat
    decay: BetweenZeroAndOne

    def init(self, module: NormalNoise[RowBatch], rng: Rng) -> Averages:
        no_rows = isinstance(module, RowContext) and not module.context_dim
        if self.solver == "adam" and self.objective == "partial_gradients" and no_rows:
            raise ConfigMismatchError(
                "objective=partial_gradients of gradient=context_free_cv requires rows, but there "
                "are none; set inference.gradient.objective to gradient_sum"
            )
        parameters = list(module.parameters())
        P = sum(p.numel() for p in parameters)
        K = (self.order + self.radial) * module.noise_dim
        zeros = parameters[0].new_zeros(P, K)
        coefficient = Coefficient(zeros.clone())
        zero = zeros.new_zeros(())
        return Averages(
            coefficient,
            Adam(coefficient.parameters(), self.lr),
            zeros[:, 0].clone(),
            zero,
            zeros,
            zero,
        )

    def coefficients(
        self, module: NormalNoise[RowBatch], batch: RowBatch, state: Averages
    ) -> tuple[Tensor, None]:
        return state.control.c[None], None

    def learn(self, state: Averages, results: DrawResults) -> Averages:
        if self.solver == "adam":
            return super().learn(state, results)
        keep = self.decay
        add = 1 - self.decay
        cross = state.cross
        cross_weight = state.seen
        if state.weight > 0:  # there is an earlier mean that does not contain this noise
            cross = keep * cross + add * self.moments(results, state.mean / state.weight)
            cross_weight = keep * cross_weight + add
        mean = keep * state.mean + add * results.gradient
        weight = keep * state.weight + add
        if cross_weight > 0:
            state.control.c.data.copy_(cross / cross_weight)
        return replace(state, mean=mean, weight=weight, cross=cross, seen=cross_weight)

    def moments(self, results: DrawResults, mean: Tensor) -> Tensor:
        """Contribution of one noise draw to Cov[Ĝ, W] Cov[W]⁻¹ [P, K·D] about a mean of Ĝ [P].
        With single rows it is computed row by row: the same expectation, without the products of
        one row's gradient with another's noise, which have mean 0."""
        rows = len(results.w)
        whitened = self.whiten(results)
        if results.rows is not None:
            return ((results.rows - mean / rows) / results.unit).T @ whitened / rows
        return torch.outer(
            (results.gradient - mean) / results.unit,
            whitened.mean(0) / (rows if results.shared else 1),
        )

    def whiten(self, results: DrawResults) -> Tensor:
        """Cov[w]⁻¹ w_b [B, K·D]: powers j, k of one coordinate have covariance (E ε^{j+k} − E ε^j E
        ε^k)/S; with radial functions, by quadrature."""
        orders = range(1, self.order + 1)
        within = results.w.new_tensor(
            [[moment(j + k) - moment(j) * moment(k) for k in orders] for j in orders]
        )
        if self.radial:
            nodes, weights = (results.w.new_tensor(v) for v in hermegauss(NODES))
            values = basis(nodes.unsqueeze(1), self.order, self.radial)  # [NODES, K + J]
            within = values.T @ (values * (weights / weights.sum()).unsqueeze(1))
        return torch.linalg.solve(
            within / self.n_samples, results.w.unflatten(1, (len(within), -1))
        ).flatten(1)
