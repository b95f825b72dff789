"""The generalised particle filter, with any of the losses and proposals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import (
    AdditiveGaussian,
    BoundedObservation,
    GaussianNoise,
    PowerIntegral,
    StateSpace,
)
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.errors import QuestionableConfigWarning
from components.registry import register
from components.series.filtering.generalised_particle_filter import (
    FilterState,
    FilterStep,
    Potential,
)
from components.series.filtering.guided import GUIDE_REQUIREMENTS, Guide, advance_guided
from components.series.filtering.iterated import IteratedProposal, PassOptions, TwistedState
from components.series.filtering.losses import (
    log_beta_estimate,
    log_beta_likelihood,
    log_gamma_likelihood,
    log_huber_likelihood,
    log_likelihood,
)
from components.series.sequence import Sequence

Loss = Literal["kl", "beta", "gamma", "huber"]
# for each loss: the potential, its key and the protocol required of the model
LOSSES: dict[Loss, tuple[Callable[..., Tensor], tuple[str, ...], tuple[type, ...]]] = {
    "kl": (log_likelihood, (), ()),
    "beta": (log_beta_likelihood, ("beta",), (PowerIntegral,)),
    "gamma": (log_gamma_likelihood, ("gamma",), (PowerIntegral,)),
    "huber": (log_huber_likelihood, ("threshold",), (GaussianNoise,)),
}


@register("inference", "generalised_filter")
class GeneralisedFilter(IteratedProposal):
    """Generalised particle filter: any loss ℓ in place of −log g, any proposal q.

    x̄_t ~ q_t(· | x_{t−1}, y_t), w_t ∝ w_{t−1} exp(−ℓ(x̄_t, y_t)) f_t / q_t, then
    resampling as in the bootstrap filter.  ℓ is the loss of the KL divergence (−log g), of
    the β- or the γ-divergence (β = 0 and γ = 0 are KL), or Huber's loss of the whitened
    residual.  ``integral: poisson`` replaces G^β by an unbiased estimate without its integral,
    which makes this a random-weight particle filter.  Particles are [R, N, dx]; the normaliser
    belongs to the generalised posterior, and is the evidence only for KL.  A missing observation
    leaves the weights unchanged.

    ``optimal`` and ``linearised`` proposals follow y_t as the likelihood does.  A robust loss
    discounts an outlier: its posterior stays near f, wider than q and away from it, and w_t =
    exp(−ℓ) f_t / q_t then has a large variance.  Such proposals are unbiased but inefficient with
    few particles; a warning reports this.

    ``iterated`` is the iterated auxiliary filter.  It runs at most ``passes`` passes over the whole
    series before the first step, and each fits, from T to 0, ψ_t(x) = exp(quadratic) + c_t to
    G_t(x) ∫ f(x' | x) ψ_{t+1}(x') dx'; then x_t ~ f_t ψ_t / f̃_t, w_t ∝ w_{t−1} f̃_t G_t / ψ_t,
    f̃_t = ∫ f_t ψ_t.  c_t is ``floor`` times the mean of ∫ f_t exp(quadratic), so that about this
    share of the particles moves by f.  A replicate keeps its ψ as soon as log Ẑ of two passes
    differs by less than ``spread``.  ψ is fitted to G, so the proposal of a robust loss discounts
    outliers in the same way.  The evidence is unbiased given ψ, and exact for a linear Gaussian model with KL and
    ``floor`` 0; means and intervals of the filtered states weight particles that depend on the
    whole series, and so need more particles than in the bootstrap filter.  N is fixed (the source
    doubles it); ψ is fitted on the log scale.
    Raises NumericalError if all weights of a replicate are zero.

    Source: Boustati (2021), Algorithm 6, section 6.3.2 and eqs. (2.92), (6.11); Fujisawa & Eguchi (2008);
    Huber (1964); Guarniero, Johansen & Lee (2017), Algorithms 1, 3 and 4.
    """

    loss: Loss
    proposal: Literal["transition", "iterated"] | Guide
    passes: PositiveInt
    spread: NonNegativeFloat
    floor: NonNegativeFloat
    beta: NonNegativeFloat
    gamma: NonNegativeFloat
    threshold: PositiveFloat
    integral: Literal["exact", "poisson"]

    def asked_by_keys(self) -> dict[type, str]:
        if self.proposal == "transition":
            by_proposal: dict[type, str] = {}
        elif self.proposal == "iterated":
            by_proposal = {AdditiveGaussian: "proposal"}
        else:
            by_proposal = dict.fromkeys(GUIDE_REQUIREMENTS[self.proposal], "proposal")
        if self.loss == "beta" and self.integral == "poisson":
            estimate = (GaussianNoise, BoundedObservation)
            return by_proposal | dict.fromkeys(estimate, "integral")
        return by_proposal | dict.fromkeys(LOSSES[self.loss][2], "loss")

    def weighs_by_likelihood(self) -> bool:
        return (
            self.loss == "kl"
            or (self.loss, self.beta) == ("beta", 0)
            or (self.loss, self.gamma) == ("gamma", 0)
        )

    def init(self, model: StateSpace, problem: Sequence, rng: Rng) -> FilterState[StateSpace]:
        state = super().init(model, problem, rng)
        if self.proposal == "iterated":
            pairs = problem.batches("observation", rng, 0, len(problem.observations[0]))
            times = [batch for _, batch in pairs if isinstance(batch, Observation)]
            options = PassOptions(self.passes, self.spread, self.floor)
            return self.learn(state, times, options, rng)
        if self.proposal != "transition" and not self.weighs_by_likelihood():
            warnings.warn(
                QuestionableConfigWarning(
                    f"inference.proposal={self.proposal} follows outliers that "
                    f"inference.loss={self.loss} discounts, so the weights have a large variance "
                    "and few effective particles; set inference.proposal=transition"
                ),
                stacklevel=1,
            )
        return state

    def potential(self, model: Any, t: int, generator: torch.Generator) -> Potential[Any]:
        """log exp(−ℓ), up to a constant, for a model with the protocol that the loss requires."""
        if self.loss == "beta" and self.integral == "poisson":
            log_bound = model.log_observation_bound(t)
            return partial(
                log_beta_estimate, beta=self.beta, log_bound=log_bound, generator=generator
            )
        potential, keys, _ = LOSSES[self.loss]
        return partial(potential, **{key: getattr(self, key) for key in keys})

    def step(
        self, state: FilterState[StateSpace], batch: Observation, rng: Rng
    ) -> FilterStep[StateSpace]:
        if isinstance(state, TwistedState):
            return self.advance_twisted(state, batch, rng)
        if self.proposal in ("optimal", "linearised"):
            potential = self.potential(state.model, batch.t, rng.noise)
            return advance_guided(state, batch, rng, potential, self.proposal, self.resampler())
        return super().step(state, batch, rng)
