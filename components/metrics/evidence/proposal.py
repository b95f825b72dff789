"""Importance proposals for latent variables of rows: Laplace fits per row, guide, and prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.maths.spacing import row_numbers

Target = Callable[[Tensor], Tensor]  # log p(x_b, z_sb) at z [S, B, D]: [S, B]

ITERATIONS = 10  # iterations of Newton's method from the mean of the guide
HALVINGS = 8  # halvings of a Newton step; the best one is taken
# ratio of the proposal's standard deviations to the fit's, for heavier tails
WIDER = 1.2
# samples of each row in one call of the densities, so that activations fit in the cache
AT_ONCE = 20
GUIDE = 0.25
PRIOR = 0.05  # shares of the samples for the guide and the prior


def derivatives(target: Target, z: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient [B, D] and Hessian [B, D, D] of log p(x_b, z_b) at z [B, D], with D copies of z that
    each compute a row of the Hessian."""
    D = z.shape[-1]
    copies = z.detach().expand(D, *z.shape).clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(target(copies).sum(), copies, create_graph=True)
        (rows,) = torch.autograd.grad(gradient.diagonal(dim1=0, dim2=2).sum(), copies)  # [D, B, D]
    hessian = rows.transpose(0, 1)
    return gradient[0].detach(), 0.5 * (hessian + hessian.mT)


def bent(hessian: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues [B, D] of −∇² log p(x, z), at least 1, and their directions [B, D, D]: under a
    prior N(0, I) the posterior is assumed not to be wider than the prior in any direction.  Signs
    of directions, and therefore draws, are the same on every device as on the CPU."""
    curvature, directions = torch.linalg.eigh(-hessian.double().cpu())
    return curvature.clamp_min(1.0).to(hessian), directions.to(hessian)


def fit(target: Target, start: Tensor) -> tuple[Tensor, Tensor]:
    """Laplace fit N(ẑ, L Lᵀ) of p(z_b|x_b) by ascent from a start [B, D]: ẑ [B, D], L [B, D, D].

    Newton steps with curvatures of at least 1; among halved steps the one with the highest log p(x,
    z) is taken, or none if no step increases it.

    Source: Nocedal and Wright (2006), section 3.4; Bishop (2006), section 4.4."""
    z = start.detach()
    sizes = torch.cat([0.5 ** torch.arange(HALVINGS), torch.zeros(1)]).to(z)[:, None, None]
    for _ in range(ITERATIONS):
        gradient, hessian = derivatives(target, z)
        curvature, directions = bent(hessian)
        ascent = (directions @ ((directions.mT @ gradient[..., None]) / curvature[..., None]))[
            ..., 0
        ]
        trials = z + sizes * ascent  # [H + 1, B, D], the last is the current position
        with torch.no_grad():
            best = target(trials).nan_to_num(nan=-torch.inf).argmax(0)  # [B]
        z = trials[best, row_numbers(z)]
    curvature, directions = bent(derivatives(target, z)[1])
    return z, directions * curvature.rsqrt()[:, None, :]


@dataclass(frozen=True)
class RowGaussians:
    """N(μ_b, L_b L_bᵀ) for every row."""

    mean: Tensor  # [B, D]
    factor: Tensor  # [B, D, D]

    def apply_noise(self, noise: Tensor) -> Tensor:
        """μ + L ε from noise ε [S, B, D]."""
        return self.mean + (self.factor @ noise[..., None])[..., 0]

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density at z [S, B, D]: [S, B]."""
        white = torch.linalg.solve(self.factor, (z - self.mean)[..., None])[..., 0]
        log_det = torch.linalg.slogdet(self.factor).logabsdet
        return -0.5 * white.square().sum(-1) - log_det - 0.5 * z.shape[-1] * LOG_2PI


def components(target: Target, m: Tensor, s: Tensor) -> list[RowGaussians]:
    """The widened Laplace fit, the widened guide N(m, diag s²), and the prior N(0, I)."""
    centre, factor = fit(target, m)
    unit = torch.eye(m.shape[-1], dtype=m.dtype, device=m.device).expand(len(m), -1, -1)
    return [
        RowGaussians(centre, WIDER * factor),
        RowGaussians(m, WIDER * s.diag_embed()),
        RowGaussians(torch.zeros_like(m), unit),
    ]


def sample_proposal(target: Target, m: Tensor, s: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """z [S, B, D] from a mixture with the given number of samples from each part, and log Σ_k α_k
    q_k(z_s) [S, B]; m, s [B, D] of the guide, noise [S, B, D] ~ N(0, I).  No gradient.

    α_k = S_k / S with exact shares.

    Source: Hesterberg (1995), section 4 (defensive mixtures); Owen and Zhou (2000), section 4
    (exact shares)."""
    S = len(noise)
    counts = [0, round(GUIDE * S), math.ceil(PRIOR * S)]
    counts[0] = S - sum(counts)
    parts = [(part, n) for part, n in zip(components(target, m, s), counts, strict=True) if n > 0]
    with torch.no_grad():
        draws = noise.split([n for _, n in parts])
        z = torch.cat(
            [
                part.apply_noise(part_noise)
                for (part, _), part_noise in zip(parts, draws, strict=True)
            ]
        )
        each = [part.log_prob(z) + math.log(n / S) for part, n in parts]
        return z, torch.stack(each).logsumexp(0)


def log_weights(
    target: Target, m: Tensor, s: Tensor, n_samples: int, generator: torch.Generator
) -> Tensor:
    """log p(x, z_s) − log q(z_s) for z from ``sample_proposal``, [S, B]; m, s [B, D] of the guide.

    The fit is deterministic, so that the mean of exp w is p(x) for any guide and any S; a share of
    the prior bounds the weights by sup p(x|z) / α_3."""
    noise = standard_normal((n_samples, *m.shape), generator, m)
    z, log_q = sample_proposal(target, m, s, noise)
    with torch.no_grad():
        return torch.cat([target(some) for some in z.split(AT_ONCE)]) - log_q
