"""A Gaussian-process classifier with inducing points."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.kernels import Shape
from components.models.shallow_gp.build import ShallowGPSettings, build_shallow_gp
from components.models.shallow_gp.prior import IndependentCovariance
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from components.registry import register

ROWS = 500  # training rows for the lengthscale, a median distance


def find_median_distance(x: Tensor) -> float:
    """Median of ‖x_i − x_j‖ over distinct pairs of the first ``ROWS`` rows of x [N, D]; 1 without
    such pairs."""
    distances = torch.pdist(x[:ROWS])
    apart = distances[distances > 0]
    return float(apart.median()) if len(apart) else 1.0


@register("model", "gp_classifier")
class GPClassifier(Model[Supervised, SparseGP]):
    """Gaussian-process classifier: a latent function per class, or one for binary labels, with
    inducing points.

    y ~ softmax(f(x)), f_c ~ GP(0, σ² κ) for c = 1 … C, or P(y = 1) = Φ(f(x)) or 1/(1 + e⁻ᶠ); q(u_c)
    = N(m_c, C_c C_cᵀ), whitened.  Classes share the kernel and the inducing inputs; tasks are
    independent. p(y|x) is differentiable in x: by quadrature for binary labels, by samples of f for
    classes.  It is ``igp`` with a sparse posterior; inputs need not be standardised if
    ``lengthscale`` is null, i.e. the median distance between training rows.  x [B, D] -> [S, B, T,
    C].

    Source: Hensman, Matthews and Ghahramani (2015), section 3; Rasmussen and Williams (2006),
    chapter 3."""

    requires = Requirements(kinds={"supervised"}, targets={"binary", "classes"})

    kernel: Shape
    ard: bool
    lengthscale: PositiveFloat | None
    variance: PositiveFloat
    hyperprior: PositiveFloat | None
    n_inducing: PositiveInt
    inducing: Literal["rows", "kmeans"]
    link: Literal["probit", "logit"]
    quadrature_nodes: PositiveInt
    jitter: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> SparseGP:
        """Build ``SparseGP`` with the training labels."""
        x = problem.train.x
        options = self.model_dump(exclude={"name", "ard", "kernel", "lengthscale", "variance"})
        lengthscale = self.lengthscale or find_median_distance(x)
        # unused: class labels have no observation noise
        settings = ShallowGPSettings(
            posterior="sparse", bound="variational", mean="zero", noise_variance=1.0, **options
        )
        ard: Literal["own", "none"] = "own" if self.ard else "none"
        covariance = IndependentCovariance(
            self.kernel, ard, lengthscale, self.variance, problem.n_tasks, x
        )
        module = build_shallow_gp(settings, problem, covariance, rng)
        assert isinstance(module, SparseGP)
        return module
