"""The bootstrap particle filter."""

from __future__ import annotations

from typing import ClassVar

from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import StateSpace
from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info, Probability
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.inference.filtering.generalised_particle_filter import FilterState, advance, start
from components.posteriors.filtered import Filtered
from components.problems.sequence import Sequence
from components.registry import register


def log_likelihood(model: StateSpace, batch: Observation, x: Tensor) -> Tensor:
    """log g_t(y_t | x_t) of every particle x [R, N, dx] -> [R, N]."""
    return model.log_observation(batch.y, x, batch.t)


@register("inference", "bootstrap_filter")
class BootstrapFilter(Inference[StateSpace, Sequence, Observation, FilterState[StateSpace]]):
    """Bootstrap particle filter with systematic resampling, R replicates of N particles at once.

    x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} g_t(y_t | x̄_t), then x_t ~ Σ_n w_t^n δ(x̄_t^n) and equal weights where the effective
    sample size is at most ``resample_below`` · N.  Particles are [R, N, dx]; the product over t of Σ_n w_{t−1}^n g_t is an
    unbiased estimate of the evidence.  A missing observation leaves the weights as they are.  Raises NumericalTrouble when
    all weights of a replicate are zero.

    Source: Gordon et al. (1993); Boustati (2021), Algorithm 6 with q = f and G = g."""

    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    sees: ClassVar[Sees] = "observation"
    needs: ClassVar[frozenset[str]] = frozenset({"state_space"})
    gives: ClassVar[frozenset[str]] = frozenset({"filtered_states"})
    particles: PositiveInt
    resample_below: Probability

    def init(self, model: StateSpace, problem: Sequence, rng: Rng) -> FilterState[StateSpace]:
        return start(model, problem, self.particles, rng)

    def step(
        self, state: FilterState[StateSpace], batch: Observation, rng: Rng
    ) -> tuple[FilterState[StateSpace], Info]:
        return advance(state, batch, rng, log_likelihood, self.resample_below)

    def posterior(self, state: FilterState[StateSpace]) -> Filtered:
        return state.filtered.so_far()
