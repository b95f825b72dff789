"""One Gaussian process per task, in one batched computation."""

from __future__ import annotations

from components.contracts.streams import Rng
from components.models.shallow_gp.build import (
    ShallowGPModel,
    StationarySettings,
    build_shallow_gp,
)
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.prior import ARD, IndependentCovariance
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "igp")
class IGP(ShallowGPModel, StationarySettings):
    """Independent Gaussian processes (iGP), one per task, exact or with variational inducing
    points.

    y_t = f_t(x) + N(0, σ_t²), f_t ~ GP(m_t, k_t); exact: the bound is log p(y); sparse: q(u_t) =
    N(m, C Cᵀ), whitened. A ``hyperprior`` τ adds Σ log N(ln θ | ln θ₀, τ²) over lengthscales,
    variances and noises θ with initial values θ₀: maximum a posteriori estimates, which prevent
    overfitting with few labels and many lengthscales.

    Source: Rasmussen and Williams (2006), chapters 2 and 5; Hensman, Fusi and Lawrence (2013), eq.
    (4)."""

    ard: ARD

    def build(self, problem: Supervised, rng: Rng) -> ExactGP | SparseGP:
        """Build ``ExactGP`` or ``SparseGP`` with the training labels.

        Raises:
            ConfigMismatchError: the posterior is exact but labels are not real.
        """
        covariance = IndependentCovariance(
            self.kernel, self.ard, self.lengthscale, self.variance, problem.n_tasks, problem.train.x
        )
        return build_shallow_gp(self, problem, covariance, rng)
