"""One Gaussian process for each task, all of them in one batched computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from torch import nn

from components.contracts.roles import Model
from components.models.shallow_gp.build import ShallowGPSettings, shallow_gp
from components.models.shallow_gp.prior import ARD, Independent
from components.registry import register

if TYPE_CHECKING:
    from components.contracts.streams import Rng
    from components.problems.supervised import Supervised


@register("model", "igp")
class IGP(Model, ShallowGPSettings):
    """Independent Gaussian processes (iGP), one for each task, exact or with variational inducing points.

    y_t = f_t(x) + N(0, σ_t²), f_t ~ GP(m_t, k_t); exact: the bound is log p(y); sparse: q(u_t) = N(m, C Cᵀ), whitened.
    A ``hyperprior`` τ adds Σ log N(ln θ | ln θ₀, τ²) over lengthscales, variances and noises θ (their starts θ₀):
    estimates maximum a posteriori, without which few labels and many lengthscales overfit.

    Source: Rasmussen and Williams (2006), chapters 2 and 5; Hensman, Fusi and Lawrence (2013), eq. (4).
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    targets: ClassVar[frozenset[str] | None] = frozenset({"real", "binary", "classes"})
    offers: ClassVar[frozenset[str]] = frozenset({"elbo"})

    ard: ARD

    def build(self, problem: Supervised, rng: Rng) -> nn.Module:
        """``ExactGP`` or ``SparseGP`` on the training labels.

        Raises:
            ValueError: an exact posterior of labels that are not real.
        """
        covariance = Independent(
            self.kernel, self.ard, self.lengthscale, self.variance, problem.n_tasks, problem.train.x
        )
        return shallow_gp(self, problem, covariance, rng)
