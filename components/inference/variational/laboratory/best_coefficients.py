"""Smallest variance of a gradient with polynomial control variates in the noise and optimal
coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from components.contracts.capabilities import NormalNoise
from components.contracts.problems import RowBatch
from components.errors import ConfigMismatchError
from components.gradients.by_parameter import flat
from components.gradients.pathwise.bound import row_gradients, whole_gradient
from components.gradients.pathwise.controlled import control_variates

CHUNK = 2**21  # number of row gradient entries in memory at a time


class BestRatios(NamedTuple):
    """Tr Cov[G̃]/Tr Cov[Ĝ] with the best coefficients, at a fixed batch."""

    per_row: float  # separate coefficients c_b for each row
    context_free: float  # common coefficients c for all rows


@dataclass
class CrossMoments:
    """Sums over draws of products of u = (1, w) and g for each of B rows, for least squares and
    residuals."""

    uu: Tensor  # Σ u uᵀ [B, U, U]
    ug: Tensor  # Σ u gᵀ [B, U, P]
    gg: Tensor  # Σ ‖g‖² [B]
    n: int = 0

    def add(self, w: Tensor, g: Tensor) -> None:
        """Add w [M, B, K·D] and g [M, B, P] of M draws."""
        u = torch.cat([torch.ones_like(w[..., :1]), w], -1).double()
        g = g.double()
        self.uu += torch.einsum("mbu,mbv->buv", u, u)
        self.ug += torch.einsum("mbu,mbp->bup", u, g)
        self.gg += g.square().sum((0, 2))
        self.n += len(w)

    def coefficients(self) -> Tensor:
        """Least squares of g on u, [B, U, P]: first the intercept, then Cov[ĝ_b, w] Cov[w]⁻¹ of
        these draws."""
        return torch.linalg.solve(self.uu, self.ug)

    def remaining_variance(self, c: Tensor) -> Tensor:
        """Σ_b Tr Cov[g_b − cᵀ w_b] [] of these draws about their mean, c [B, K·D, P]."""
        mean = self.ug[:, 0] / self.n - torch.einsum("bu,bup->bp", self.uu[:, 0, 1:] / self.n, c)
        cross = (c * self.ug[:, 1:]).sum((1, 2))
        square = (c * (self.uu[:, 1:, 1:] @ c)).sum((1, 2))
        return ((self.gg - 2 * cross + square - self.n * mean.square().sum(1)) / (self.n - 1)).sum()


def best_ratios(
    module: NormalNoise[RowBatch],
    batch: RowBatch,
    n_samples: int,
    order: int,
    draws: int,
    generator: torch.Generator,
) -> BestRatios:
    """Smallest variance of reparameterisation gradients with order-K polynomial control variates.

    The polynomials are in the noise, for a module at a batch.

        c*_b = Cov[ĝ_b, w(ε_b)] Cov[w]⁻¹
        c* = Cov[Ĝ, W] Cov[W]⁻¹ = B⁻¹ Σ_b c*_b,   W = Σ_b w(ε_b)

    [K·D, P] each, by least squares on half of the draws; the remaining variance is measured on the
    other half, and then the halves are swapped.  The result is therefore not biased downward by the
    fit: it is above the limit by about one part in draws/(2·K·D).  Rows are independent, so Tr
    Cov[G̃] is a sum over them; if they share their noise, the batch is treated as one row, and the
    two ratios are equal.  Memory: 4 · B · P · K · D numbers.

    Raises:
        ConfigMismatchError: there are too few draws to fit, or the module's rows cannot be
        evaluated separately.

    Source: Boustati (2021), eqs. (2.98), (4.6) and (4.17).
    """
    K = order * module.noise_dim
    probe = module.draw_noise(batch, n_samples, generator)
    if draws // 2 <= K + 1:
        raise ConfigMismatchError(
            f"{draws} draws are too few to fit {K} coefficients of the noise; use at least {20 * K}"
        )
    is_shared = batch.n_rows == 1 or probe.stride(1) == 0  # one draw is shared by all rows
    parameters = list(module.parameters())
    B = 1 if is_shared else batch.n_rows
    P = sum(p.numel() for p in parameters)
    zeros = torch.zeros((), dtype=torch.float64, device=probe.device)
    U = K + 1
    halves = [
        CrossMoments(zeros.new_zeros(B, U, U), zeros.new_zeros(B, U, P), zeros.new_zeros(B))
        for _ in range(2)
    ]
    for half in halves:
        while half.n < draws // 2:
            if is_shared:
                noise = module.draw_noise(batch, n_samples, generator)
                w = control_variates(noise, order).sum(0)[None, None]
                half.add(w, flat(whole_gradient(module, batch, noise)[0], parameters)[None, None])
                continue
            times = min(draws // 2 - half.n, max(1, CHUNK // (B * P)))
            rows = torch.arange(B, device=probe.device).repeat(times)
            # each row repeated for its draws, scaled to N rows in total
            many = batch.part(rows, batch.scale / times)
            noise = module.draw_noise(many, n_samples, generator)
            g = times * row_gradients(module, many, noise)[0]
            half.add(
                control_variates(noise, order).unflatten(0, (times, B)), g.unflatten(0, (times, B))
            )
    nothing = zeros.expand(B, K, P)
    remaining = zeros
    free = zeros
    for fitted, other in (halves, halves[::-1]):
        c = fitted.coefficients()[:, 1:]
        remaining = remaining + other.remaining_variance(c)
        free = free + other.remaining_variance(c.mean(0, keepdim=True).expand_as(c))
    plain = sum((half.remaining_variance(nothing) for half in halves), zeros)
    return BestRatios(float(remaining / plain), float(free / plain))
