"""The density of a whole linear Gaussian series by one Cholesky factor: its covariance is linear in
the noises' variances."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.series.linear_filter import LinearSystem

LONGEST = 500  # times up to which a factor of T³/3 is sooner made than T steps of a filter
NUMBERS = 3 * 10**7  # of K covariances [T, T] at once, a quarter of a gigabyte


@dataclass(frozen=True)
class SeriesCovariance:
    """x_1:T ~ N(μ, U Uᵀ + Σ_p v_p B_p) of a linear system with states summed out, in float64.

    Let h_k = F Gᵏ and let M_j be the lower triangular Toeplitz matrix of (h_0)_j, (h_1)_j,
    … The noise of state j, of variance q_j, contributes q_j M_j M_jᵀ, the noise of the
    observations contributes r I, and z_0 contributes U with rows s_0 h_t.
    """

    mean: Tensor  # μ [T]
    start: Tensor  # U [T, d]
    # B [1 + P, T, T]: that of the observations, then those of the states in the order of their
    # variances
    parts: Tensor

    @classmethod
    def of(cls, system: LinearSystem, shared: list[int], times: int) -> SeriesCovariance:
        """``shared``: how many states, in their order, have one variance in common."""
        system = system.like(torch.empty(0, dtype=torch.float64, device=system.F.device))
        state = system.m0
        mean = []
        h = [system.F]
        for _ in range(times):
            state = system.G @ state + system.c
            mean.append(system.F @ state + system.a)
            h.append(h[-1] @ system.G)
        effects = torch.stack(h)  # h_k [T + 1, d]
        time = torch.arange(times, device=effects.device)
        lag = time.unsqueeze(1) - time  # k of the noise of time u in x_t [T, T]
        M = torch.where((lag >= 0).unsqueeze(2), effects[lag.clamp_min(0)], 0.0)  # [T, T, d]
        parts = [torch.einsum("tuj,suj->ts", block, block) for block in M.split(shared, 2)]
        eye = torch.eye(times, dtype=torch.float64, device=effects.device)
        return cls(torch.stack(mean), system.s0 * effects[1:], torch.stack([eye, *parts]))

    def log_density(self, variances: Tensor, x: Tensor, seen: Tensor) -> tuple[Tensor, bool]:
        """log p(x_seen) [K] of variances [K, 1 + P], x [T], seen [T] bool; and whether every
        covariance had a factor.

            V = Σ v B = L Lᵀ,  W = L⁻¹ U,  e = L⁻¹(x − μ),  I + Wᵀ W = R Rᵀ,
            −2 log p = eᵀe − ‖R⁻¹ Wᵀ e‖² + 2 Σ log L_tt + 2 Σ log R_jj + T log 2π

        U is kept apart, for a diffuse first state would drown small variances in V + U Uᵀ.

        Source: Woodbury's identity and the matrix determinant lemma."""
        parts = self.parts[:, seen][:, :, seen]
        start = self.start[seen]
        V = torch.einsum("kp,pst->kst", variances.double(), parts)  # [K, n, n]
        L, failed = torch.linalg.cholesky_ex(V)
        right = torch.cat([start, (x.double() - self.mean)[seen].unsqueeze(1)], 1)
        W, e = torch.linalg.solve_triangular(
            L, right.expand(len(V), -1, -1), upper=False
        ).tensor_split([-1], 2)
        R = torch.linalg.cholesky_ex(
            torch.eye(start.shape[1], dtype=V.dtype, device=V.device) + W.mT @ W
        )[0]
        spared = torch.linalg.solve_triangular(R, W.mT @ e, upper=False)
        square = e.square().sum((1, 2)) - spared.square().sum((1, 2))
        log_det = sum(2 * factor.diagonal(dim1=1, dim2=2).log().sum(1) for factor in (L, R))
        value = -0.5 * (square + log_det + len(start) * math.log(2 * math.pi))
        return value.to(variances), not bool(failed.any())
