"""One Gaussian process over all tasks: intrinsic coregionalisation."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from components.contracts.streams import Rng
from components.models.shallow_gp.build import (
    ShallowGPModel,
    StationarySettings,
    build_shallow_gp,
)
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.prior import CoregionalisedCovariance
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "cgp")
class CGP(ShallowGPModel, StationarySettings):
    """Coregionalised Gaussian process (cGP, ICM): tasks share a kernel and a learnt covariance
    between tasks.

    Cov[f_t(x), f_t'(x')] = B_tt' κ(x, x'), B = W Wᵀ + diag(κ₁ … κ_T), W [T, R]; y_t = f_t(x) + N(0,
    σ_t²).  Exact over all observed (row, task) labels, or with inducing pairs (z, t) and q(u) =
    N(m, C Cᵀ), whitened.  ``hyperprior``: as in igp, for ln ℓ, ln κ and ln σ²; W ~ N(0, variance/(2
    R)).

    Source: Bonilla, Chai and Williams (2007), eqs. (1) to (3); Goovaerts (1997).
    """

    ard: Literal["none", "shared"]
    rank: PositiveInt

    def build(self, problem: Supervised, rng: Rng) -> ExactGP | SparseGP:
        """Build ``ExactGP`` or ``SparseGP`` with the training labels.

        Raises:
            ConfigMismatchError: the posterior is exact but labels are not real.
        """
        covariance = CoregionalisedCovariance(
            shape=self.kernel,
            ard=self.ard == "shared",
            lengthscale=self.lengthscale,
            variance=self.variance,
            rank=self.rank,
            n_tasks=problem.n_tasks,
            like=problem.train.x,
            generator=rng.init,
        )
        return build_shallow_gp(self, problem, covariance, rng)
