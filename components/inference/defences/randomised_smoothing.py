"""Randomised smoothing: training and prediction under Gaussian noise, with certificates in L2."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt

from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.point.descent import DescentState, descend, frozen
from components.inference.point.network_descent import NetworkDescent
from components.maths.exponential.standard_draws import normal_like
from components.posteriors.noisy_votes import SmoothedNetwork
from components.registry import register


@register("inference", "randomised_smoothing")
class RandomisedSmoothing(NetworkDescent):
    """Randomised smoothing: the class that a network predicts most often under Gaussian noise.

        g(x) = argmax_c P(f(x + η) = c),  η ~ N(0, σ² I)

    f is trained on noisy inputs: θ̂ = argmin_θ E_(x,y),η[−log p(y|x + η, θ)] − log p(θ)/N, with new
    η for each row and step.  A prediction is the majority of ``votes`` draws.  A certificate takes
    the class ĉ_A with most votes among n₀ = ``selection_draws``, computes a lower bound p̲_A on its
    probability from n = ``certificate_draws`` others (Clopper and Pearson, level α = ``level``),
    and holds within the radius

        R = σ Φ⁻¹(p̲_A)  where p̲_A > ½; otherwise it abstains,

    in L2, hence in L1 for the same radius and in L∞ for R/√D.  It is a statement about g, not about
    the votes of one prediction, and is wrong with probability at most α for each label.  Noise is
    not clipped to the bounds of the inputs.  σ → 0 is ``map``.

    ``abstained`` is the share of labels without a certificate.  An attack follows the mean of the
    probabilities under noise.

    Source: Cohen, Rosenfeld and Kolter (2019), Theorem 1, CERTIFY and PREDICT (here without
    abstention: ties go to the larger mean probability).
    """

    requires = Requirements(targets={"binary", "classes"})

    sigma: PositiveFloat
    votes: PositiveInt
    selection_draws: PositiveInt
    certificate_draws: PositiveInt
    level: Annotated[float, Field(gt=0, lt=0.5)]

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        x = batch.x
        eta = normal_like(x, rng.noise)
        noisy = replace(batch, x=x + self.sigma * eta)
        return state, descend(state.network, state.optimizer, noisy, None)

    def posterior(self, state: DescentState) -> SmoothedNetwork:
        return SmoothedNetwork(
            network=frozen(state.network),
            sigma=self.sigma,
            votes=self.votes,
            selection_draws=self.selection_draws,
            certificate_draws=self.certificate_draws,
            level=self.level,
        )
