"""A normal with unknown mean and precision."""

from __future__ import annotations

from pydantic import PositiveFloat

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.models.mixtures.normal_gamma_ascent import NormalGammaModule
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("model", "normal_gamma")
class NormalGamma(Model[Unlabelled, NormalGammaModule]):
    """A normal with unknown mean and precision, and their conjugate prior.

    x ~ N(μ, 1/τ), μ | τ ~ N(m, 1/(κτ)), τ ~ Gamma(a, b) with mean a/b.  The posterior is
    normal–gamma, in closed form; its mean-field approximation is q(μ) q(τ).
    ``inference.joint=[all]`` of cavi keeps the joint q(μ, τ).  Samplers use (μ, log τ); a Gibbs
    sampler draws mu and tau.

    Raises ConfigMismatchError for rows of more than one value.

    Source: Bishop (2006), section 10.1.3; Murphy (2012), section 21.5.1; Bardenet (2021), section
    5.2."""

    requires = Requirements(
        kinds={"unlabelled"},
        values={"real"},
        required_traits={"single_values": "supports only one value per row"},
    )

    mean: float
    kappa: PositiveFloat
    shape: PositiveFloat
    rate: PositiveFloat

    def build(self, problem: Unlabelled, rng: Rng) -> NormalGammaModule:
        x = problem.train.x
        if x[0].numel() != 1:
            raise ConfigMismatchError(
                f"model={self.name}: requires rows of one value, but rows of "
                f"dataset={problem.name} have more; use model=gaussian_mixture model.clusters=1"
            )
        return NormalGammaModule(self.mean, self.kappa, self.shape, self.rate, x)
