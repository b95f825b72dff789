"""Control variate for the reparameterisation gradient from a Taylor expansion at q's mean."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from components.contracts.capabilities import LocationScale
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.surrogate import (
    Derivatives,
    apply_affine,
    detach_affine,
    mean_path,
    path,
    without,
)
from components.registry import register


@register("gradient", "taylor_cv")
class TaylorCV(StatelessGradient[LocationScale[RowBatch]]):
    """Taylor control variate: ∇f is replaced by its first-order expansion with known mean.

    The expansion is around the mean of q.

        g̃ = ĝ − N/B Σ_b S⁻¹ Σ_s {∂θ(ε_sb)ᵀ r_b(ε_sb) − E[∂θ(ε)ᵀ r_b(ε)]}
        r_b(ε) = ∇f_b(m) + ∇²f_b(m) L ε,   θ(ε) = m + L ε

    ∂θ is the Jacobian with respect to the parameters of q.  For m the braces are ∇²f_b(m) L ε; for
    L they are r_b(ε) εᵀ − ∇²f_b(m) L, which requires the Hessian times every column of L, D
    backward passes (``scale: hessian``).  ``scale: local`` uses r_b = ∇f_b(m) for L, the
    zeroth-order expansion, which needs no backward passes but leaves most of the noise in L.
    Products with the Hessian are backward passes of the gradient; nothing is learned, and there are
    no assumptions about f_b.  θ [S, B, D].

    Source: Miller, Foti, D'Amour and Adams (2017), section 3.
    """

    requires = Requirements(capabilities={LocationScale})
    unbiased = True

    n_samples: PositiveInt
    scale: Literal["hessian", "local"]

    def estimate(
        self, module: LocationScale[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        raw_gradients, terms = whole_gradient(module, batch, noise)
        q = module.location_scale(batch)
        m, L = detach_affine(q)
        # one θ for all rows: the sum of their f is one function
        if len(m) == 1 and noise.stride(1) == 0:
            noise = noise[:, :1]
        around = Derivatives(module, batch, m.expand(*noise.shape))
        bend = around.times(apply_affine((m, L), noise) - m)  # ∇²f_b(m) L ε
        if self.scale == "local":
            surrogate = (bend * q[0]).mean(0).sum() + path((m, q[1]), noise, around.slope)
        else:
            centre = Derivatives(module, batch, m[None])
            surrogate = path(q, noise, around.slope + bend) - mean_path(
                q, centre.slope[0], centre.columns(L)
            )
        return (
            without(raw_gradients, batch.scale * surrogate, list(module.parameters())),
            terms,
            None,
        )
