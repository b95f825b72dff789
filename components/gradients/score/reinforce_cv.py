"""The score-function gradient with the score itself as control variate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import LogRatio
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, ZeroToBelowOne
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, Gradients, flat, split
from components.gradients.score.log_ratio import (
    LatentSamples,
    elbo,
    require_two_draws,
    sample_guide,
    scores,
)
from components.registry import register

NUMBERS = 2**22  # maximum number of score entries of extra draws in memory


@dataclass
class Moments:
    """Sums, or running means, of products over draws."""

    product: Tensor  # moment of X_i H_i [P]
    square: Tensor  # moment of H_i² [P]; their ratio is a


def zero_moments(module: LogRatio[RowBatch]) -> Moments:
    """Moments before the first draw."""
    parameters = list(module.parameters())
    zero = flat([None] * len(parameters), parameters)
    return Moments(zero, zero.clone())


def per_draw_scores(
    module: LogRatio[RowBatch], batch: RowBatch, draws: LatentSamples
) -> tuple[Tensor, Tensor]:
    """X_s = Σ_b f_sb ∇log q(z_sb|x_b) and H_s = Σ_b ∇log q(z_sb|x_b), [S, P] each, for all
    parameters concatenated."""
    both = scores(
        module, batch, draws.z, list(module.parameters()), [draws.f, torch.ones_like(draws.f)]
    )
    X, H = (
        torch.cat([gradient.reshape(len(gradient), -1) for gradient in by_parameter], 1)
        for by_parameter in both
    )
    return X, H


def coefficient(product: Tensor, square: Tensor) -> Tensor:
    """a = product/square, and 0 where the square is 0."""
    return torch.where(square > 0, product / square.clamp_min(torch.finfo(square.dtype).tiny), 0.0)


@register("gradient", "reinforce_cv")
class ReinforceCV(Gradient[LogRatio[RowBatch], RowBatch, Moments | None]):
    """Reinforce with the score as control variate, a coefficient a_i for each parameter.

    Coefficients are computed from draws other than those that they correct.

        ĝ_φ = −N/B S⁻¹ Σ_s (X_s − a ⊙ H_s)
        X_s = Σ_b f(z_sb) ∇_φ log q_φ(z_sb|x_b),   H_s = Σ_b ∇_φ log q_φ(z_sb|x_b)
        a_i = Σ X_i H_i / Σ H_i²,   f = log q_φ(z|x) − log p_θ(x, z),   z_sb ~ q_φ(z|x_b)

    X, H [S, P].  E H = 0 is known, so that a needs no centring.  Its sums run over earlier
    estimates with decaying weights (``running``), over the S − 1 other draws, separately
    for each draw (``sampled``), or over ``extra_samples`` additional draws of the same rows
    (``oracle``, which approaches a* as they grow).  The generative model follows the mean
    of log p.  Unbiased, because a does not depend on the draws that it corrects.  Terms:
    elbo of the whole data set in nats.  State: the running means of X_i H_i and H_i², or
    none.

    Raises:
        ConfigError: ``sampled`` with one draw, ``oracle`` without extra draws, or unused extra
        draws.

    Source: Boustati (2021), eqs. (5.11) and (5.12); Ranganath, Gerrish and Blei (2014).
    """

    requires = Requirements(capabilities={LogRatio})
    unbiased = True

    n_samples: PositiveInt
    coefficient: Literal["running", "sampled", "oracle"]
    decay: ZeroToBelowOne
    extra_samples: PositiveInt | None

    @model_validator(mode="after")
    def _check_other_draws(self) -> ReinforceCV:
        if self.coefficient == "sampled":
            require_two_draws(
                self.n_samples, "coefficient=sampled", "is computed from a row's other draws"
            )
        if (self.coefficient == "oracle") != (self.extra_samples is not None):
            mend = (
                "set it to a number of draws, for example 1000"
                if self.coefficient == "oracle"
                else "set it to null"
            )
            raise ValueError(
                f"extra_samples: only coefficient=oracle uses it, and requires it; {mend}"
            )
        return self

    def init(self, module: LogRatio[RowBatch], rng: Rng) -> Moments | None:
        if self.coefficient != "running":
            return None
        return zero_moments(module)

    def estimate(
        self, module: LogRatio[RowBatch], batch: RowBatch, rng: Rng, state: Moments | None
    ) -> Estimate[Moments | None]:
        draws = sample_guide(module, batch, self.n_samples, rng.noise)
        X, H = per_draw_scores(module, batch, draws)
        product = X * H
        square = H.square()
        if self.coefficient == "sampled":
            a = coefficient(product.sum(0) - product, square.sum(0) - square)  # [S, P]
        elif self.extra_samples is not None:
            extra = self._beside(module, batch, self.extra_samples, rng)
            a = coefficient(extra.product, extra.square)
        else:
            assert state is not None
            a = coefficient(state.product, state.square)
            state = Moments(
                torch.lerp(product.mean(0), state.product, self.decay),
                torch.lerp(square.mean(0), state.square, self.decay),
            )
        corrected = -(X - a * H).mean(0)  # [P]
        return (
            self._add_model_gradient(module, batch, draws, corrected),
            elbo(batch, draws.f),
            state,
        )

    def _beside(
        self, module: LogRatio[RowBatch], batch: RowBatch, n_samples: int, rng: Rng
    ) -> Moments:
        """The sums over separate draws."""
        sums = zero_moments(module)
        together = max(1, NUMBERS // len(sums.product))
        for begin in range(0, n_samples, together):
            X, H = per_draw_scores(
                module,
                batch,
                sample_guide(module, batch, min(together, n_samples - begin), rng.noise),
            )
            sums = Moments(sums.product + (X * H).sum(0), sums.square + H.square().sum(0))
        return sums

    def _add_model_gradient(
        self, module: LogRatio[RowBatch], batch: RowBatch, draws: LatentSamples, corrected: Tensor
    ) -> Gradients:
        """N/B (ĝ + ∇ Σ_b S⁻¹ Σ_s log p(x_b, z_sb)), parameter by parameter."""
        parameters = list(module.parameters())
        guide = split(corrected, parameters)
        if not draws.log_joint.requires_grad:
            return [batch.scale * g for g in guide]
        model = torch.autograd.grad(draws.log_joint.mean(0).sum(), parameters, allow_unused=True)
        return [
            batch.scale * (g if m is None else g + m) for g, m in zip(guide, model, strict=True)
        ]
