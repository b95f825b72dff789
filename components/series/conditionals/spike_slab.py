"""Spike-and-slab regression: a spike at 0 and a normal slab, C chains in parallel.

    γ_i ~ Bernoulli(π_i),   σ² ~ InvGamma(ν/2, ν s²/2) given σ ≤ upper
    β_γ | γ, σ² ~ N(0, σ² Ω_γγ⁻¹),   y | β, σ² ~ N(Xβ, σ² Λ⁻¹)

β and σ² are summed out in the draw of γ.  With A = XᵀΛX, b = XᵀΛy,
V_γ = (A_γγ + Ω_γγ)⁻¹ and β̂_γ = V_γ b_γ

    p(γ | y) ∝ p(γ) (|Ω_γγ| |V_γ|)^½ S_γ^{−(ν+n)/2},   S_γ = ν s² + yᵀΛy − b_γᵀ β̂_γ

and for known σ p(γ | y, σ) ∝ p(γ) (|Ω_γγ| |V_γ|)^½ exp(b_γᵀ β̂_γ/(2 σ²)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from components.series.conditionals.exact_root import root
from components.series.conditionals.truncated_gamma import deviations


@dataclass(frozen=True)
class SpikeSlab:
    """The prior of p coefficients and of the variance."""

    inclusion: Tensor  # π [p], 0 and 1 allowed
    precision: Tensor  # Ω [p, p]
    df: float  # ν
    squares: float  # ν s²
    upper: float  # of σ; may be inf

    @cached_property
    def logit(self) -> Tensor:
        """log π/(1 − π) [p], infinite where there is no choice."""
        return self.inclusion.log() - (-self.inclusion).log1p()

    def shape(self, n: int) -> float:
        """a = (ν + n)/2, of σ² | γ, y."""
        return 0.5 * (self.df + n)


@dataclass(frozen=True)
class SlabRandomNumbers:
    """Random numbers of one draw."""

    u: Tensor  # uniform [C, p]
    turn: Tensor  # uniform [C]: below ½ the coefficients are asked from the first to the last
    g: Tensor  # Gamma(a, 1) [C, 2]
    z: Tensor  # normal [C, p]


def swept(M: Tensor, k: Tensor, within: Tensor, chosen: Tensor) -> Tensor:
    """Sweep column k [C] of M [C, q, q] into the regressors of its chain, or out of them.

    The column is removed where it is ``within`` [C]; chains that are not
    ``scan_indicators`` [C] are unchanged.  Sweeping [A + Ω, b; bᵀ, ν s² + yᵀΛy] by γ gives
    −V_γ, β̂_γ, S_γ, and for the columns outside their residuals given those inside.

    Source: Goodnight (1979); the sign follows the pivot.
    """
    chains = torch.arange(len(M), device=M.device)
    row = M[chains, k]  # [C, q]
    pivot = row[chains, k]
    new = M - row.unsqueeze(2) * row.unsqueeze(1) / pivot[:, None, None]
    edge = row / pivot.unsqueeze(1)
    edge = torch.where(within.unsqueeze(1), -edge, edge)
    new[chains, k] = edge
    new[chains, :, k] = edge
    new[chains, k, k] = -pivot.reciprocal()
    return torch.where(chosen[:, None, None], new, M)


def log_odds(
    M: Tensor,
    E: Tensor,
    k: Tensor,
    within: Tensor,
    logit: Tensor,
    a: float,
    sigma: Tensor | None = None,
) -> Tensor:
    """log p(γ_k = 1 | γ_−k, y)/p(γ_k = 0 | γ_−k, y) [C] from matrices that are swept by γ: M, and E
    that begins as Ω.

    With d, e what is left of column k in them: log π_k/(1 − π_k) + ½ log e/d − a log S_1/S_0; given
    σ [C] the last is (S_0 − S_1)/(2 σ²)."""
    chains = torch.arange(len(M), device=M.device)
    last = M.shape[1] - 1
    d = M[chains, k, k]
    e = E[chains, k, k]
    h = M[chains, k, last]
    S = M[:, last, last]
    d = torch.where(within, -d.reciprocal(), d)
    e = torch.where(within, -e.reciprocal(), e)
    inside = torch.where(within, S, S - h * h / d)
    outside = torch.where(within, S + h * h * d, S)
    misfit_change = (
        a * (inside / outside).log() if sigma is None else (inside - outside) / (2 * sigma * sigma)
    )
    return logit[k] + 0.5 * (e / d).log() - misfit_change


def scan_indicators(
    prior: SpikeSlab,
    A: Tensor,
    b: Tensor,
    c: Tensor,
    n: int,
    gamma: Tensor,
    numbers: SlabRandomNumbers,
) -> tuple[Tensor, Tensor]:
    """γ [C, p] after one scan, each γ_k ~ p(γ_k | γ_−k, y), and M swept by it [C, p + 1, p + 1].

    A [C, p, p], b [C, p], c = yᵀΛy [C].  The scan goes forwards or backwards at random, which makes
    it reversible; so where σ has an upper limit, which the marginal above knows nothing of, it is a
    proposal that is taken if σ² ~ InvGamma(a, S/2) respects the limit: exact for any limit, without
    an incomplete gamma function.

    Source: George & McCulloch (1997), section 4; Scott & Varian (2014), section 3.3."""
    p = b.shape[1]
    M, E = init_sweep(prior, A, b, c + prior.squares, gamma)
    was = gamma
    M_was = M
    gamma, M = scan(prior, M, E, gamma, numbers.u, numbers.turn, prior.shape(n))
    refused = 0.5 * M[:, p, p] / numbers.g[:, 1] > prior.upper**2
    return torch.where(refused.unsqueeze(1), was, gamma), torch.where(
        refused[:, None, None], M_was, M
    )


def init_sweep(
    prior: SpikeSlab, A: Tensor, b: Tensor, corner: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor]:
    """[A + Ω, b; bᵀ, corner] and Ω, swept by γ."""
    p = b.shape[1]
    last = torch.cat([b, corner.unsqueeze(1)], 1)
    M = torch.cat([torch.cat([A + prior.precision, b.unsqueeze(2)], 2), last.unsqueeze(1)], 1)
    E = prior.precision.expand(len(b), p, p)
    nowhere = torch.zeros(len(b), dtype=torch.bool, device=b.device)
    for j in range(p):
        k = torch.full((len(b),), j, device=b.device)
        M = swept(M, k, nowhere, gamma[:, j])
        E = swept(E, k, nowhere, gamma[:, j])
    return M, E


def scan(
    prior: SpikeSlab,
    M: Tensor,
    E: Tensor,
    gamma: Tensor,
    u: Tensor,
    turn: Tensor,
    a: float,
    sigma: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """γ [C, p] after one scan, forwards or backwards as ``turn`` [C] has it, and M swept by it."""
    p = gamma.shape[1]
    chains = torch.arange(len(gamma), device=gamma.device)
    for j in range(p):
        k = torch.where(turn < 0.5, j, p - 1 - j)
        within = gamma[chains, k]
        # ∞ where π_k is 1, −∞ where it is 0
        into = (
            u[chains, k]
            < (-log_odds(M, E, k, within, prior.logit, a, sigma)).exp().add(1).reciprocal()
        )
        flips = into != within
        M = swept(M, k, within, flips)
        E = swept(E, k, within, flips)
        gamma = gamma.clone()
        gamma[chains, k] = into
    return gamma, M


def draw_given(
    prior: SpikeSlab, A: Tensor, b: Tensor, sigma: Tensor, gamma: Tensor, numbers: SlabRandomNumbers
) -> tuple[Tensor, Tensor]:
    """(γ [C, p], β [C, p]) given σ [C]: γ after one scan, then β | γ, y, σ exactly."""
    M, E = init_sweep(prior, A, b, torch.zeros_like(sigma), gamma)
    gamma, M = scan(
        prior=prior, M=M, E=E, gamma=gamma, u=numbers.u, turn=numbers.turn, a=0.0, sigma=sigma
    )
    return gamma, coefficients(M, gamma, sigma, numbers.z)


def coefficients(M: Tensor, gamma: Tensor, sigma: Tensor, z: Tensor) -> Tensor:
    """β [C, p], 0 where γ is: β_γ ~ N(β̂_γ, σ² V_γ) one after the other, each given those before; M
    is swept by γ."""
    p = gamma.shape[1]
    mean = M[:, :p, p]
    V = -M[:, :p, :p]
    out = []
    for j in range(p):
        inside = gamma[:, j]
        pivot = torch.where(inside, V[:, j, j], 1.0)
        step = torch.where(inside, sigma * root(pivot) * z[:, j], 0.0)
        out.append(torch.where(inside, mean[:, j] + step, 0.0))
        row = V[:, j]
        mean = mean + row / pivot.unsqueeze(1) * step.unsqueeze(1)
        less = row.unsqueeze(2) * row.unsqueeze(1) / pivot[:, None, None]
        V = torch.where(inside[:, None, None], V - less, V)
    return torch.stack(out, 1) if out else z


def draw(
    prior: SpikeSlab,
    A: Tensor,
    b: Tensor,
    c: Tensor,
    n: int,
    gamma: Tensor,
    numbers: SlabRandomNumbers,
) -> tuple[Tensor, Tensor, Tensor]:
    """(γ [C, p], σ [C], β [C, p]): γ after one scan, then σ² | γ, y and β | γ, σ², y exactly."""
    gamma, M = scan_indicators(prior, A, b, c, n, gamma, numbers)
    sigma = deviations(numbers.g[:, 0], prior.shape(n), 0.5 * M[:, -1, -1], prior.upper)
    return gamma, sigma, coefficients(M, gamma, sigma, numbers.z)


def numbers(prior: SpikeSlab, n: int, chains: int, generator: torch.Generator) -> SlabRandomNumbers:
    """Random numbers for one draw."""
    like = prior.inclusion
    p = len(prior.inclusion)
    u = torch.rand(chains, p + 1, generator=generator, dtype=like.dtype, device=generator.device)
    g = torch._standard_gamma(u.new_full((chains, 2), prior.shape(n)), generator=generator)
    z = torch.randn(chains, p, generator=generator, dtype=like.dtype, device=generator.device)
    return SlabRandomNumbers(u[:, :p], u[:, p], g, z)


def log_evidence(prior: SpikeSlab, A: Tensor, b: Tensor, gamma: Tensor, sigma: Tensor) -> Tensor:
    """log p(y | X, γ, σ) [C] up to what neither A nor b changes: −½ log |A_γγ + Ω_γγ| + b_γᵀ V_γ
    b_γ/(2 σ²)."""
    inside = gamma.to(b)
    both = inside.unsqueeze(2) * inside.unsqueeze(1)
    L = torch.linalg.cholesky(both * (A + prior.precision) + torch.diag_embed(1 - inside))
    half = torch.linalg.solve_triangular(L, (inside * b).unsqueeze(2), upper=False).squeeze(2)
    return half.square().sum(1) / (2 * sigma * sigma) - L.diagonal(dim1=1, dim2=2).log().sum(1)
