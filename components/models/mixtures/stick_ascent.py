"""Mean field of a Dirichlet process mixture of Gaussians, truncated at T clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities.mean_field import Factors
from components.contracts.problems import Rows
from components.maths.exponential.dirichlet import draw_log_dirichlet, expected_log, kl_dirichlet
from components.models.mixtures.mixture_ascent import (
    AssignmentAscent,
    cluster_factors,
    cluster_posterior,
)


def log_shares(logs: Tensor) -> Tensor:
    """log π_t = log v_t + Σ_{j<t} log(1 − v_j), v_T = 1, for logs of T − 1 sticks v and
    remainders 1 − v, [..., T − 1, 2] -> [..., T]."""
    log_remaining = torch.nn.functional.pad(logs[..., 1].cumsum(-1), (1, 0))
    return log_remaining + torch.nn.functional.pad(logs[..., 0], (0, 1))


@dataclass(frozen=True)
class StickAscent(AssignmentAscent):
    """q(z) Π_t q(v_t) q(μ_t, Λ_t) = Π_b Cat(z_b | r_b) Π_{t<T} Beta(v_t | γ_t1, γ_t2) Π_t NW(μ_t,
    Λ_t | m_t, β_t, V_t, ν_t).

    γ_t1 = 1 + Σ_b r_bt,  γ_t2 = α + Σ_b Σ_{j>t} r_bj,  E log π_t = E log v_t + Σ_{j<t} E log(1 −
    v_j).  Before the sticks are updated, the first T − 1 clusters are sorted by size, the order
    with the highest bound; the last, which has no stick, keeps its position, because for α > 1 it
    may be large in the optimum.  Factors sticks [S, T − 1, 2], m, beta, V, nu.

    Source: Blei & Jordan (2006), eqs. (15) to (22); Kurihara, Welling & Teh (2007), section 3
    (order)."""

    concentration: float
    joined: Callable[[Tensor, Tensor, Tensor], Tensor]

    def optimal_factors(self, r: Tensor, batch: Rows) -> Factors:
        order = r[:, :-1].sum(2).argsort(dim=1, descending=True, stable=True)
        r = torch.cat([r[:, :-1].gather(1, order[..., None].expand_as(r[:, :-1])), r[:, -1:]], 1)
        size = r.sum(2)  # [S, T]
        later = size.flip(1).cumsum(1).flip(1) - size  # Σ_{j>t}
        posterior = self.prior.posterior(r, batch.x.flatten(1))
        sticks = torch.stack([1 + size[:, :-1], self.concentration + later[:, :-1].clamp_min(0)], 2)
        return {"sticks": sticks, **cluster_factors(posterior)}

    def expected_log_weights(self, factors: Factors) -> Tensor:
        logs = expected_log(factors["sticks"])
        return log_shares(logs)

    def log_mean_weights(self, factors: Factors) -> Tensor:
        """E π_t = E v_t Π_{j<t} E(1 − v_j)."""
        sticks = factors["sticks"]
        log_means = (sticks / sticks.sum(2, keepdim=True)).log()
        return log_shares(log_means)

    def weight_divergence(self, factors: Factors) -> Tensor:
        sticks = factors["sticks"]
        return kl_dirichlet(sticks, sticks.new_tensor([1.0, self.concentration])).sum(1)

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        first = {name: v[:1].expand(n, *v.shape[1:]) for name, v in factors.items()}
        logs = draw_log_dirichlet(first["sticks"], generator)  # log v, log(1 − v) [n, T − 1, 2]
        return self.joined(log_shares(logs), *cluster_posterior(first).draw(generator))
