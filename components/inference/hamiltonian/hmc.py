"""Hamiltonian Monte Carlo with a warm-up shared by all chains."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator

from components.contracts.capabilities import LogJoint
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch, SampleableProblem
from components.inference.hamiltonian import chees
from components.inference.hamiltonian.adaptation import harmonic_mean, last_search_step, windows
from components.inference.hamiltonian.leapfrog import (
    DIVERGENT,
    Phase,
    acceptance,
    energy_error,
    leapfrog,
)
from components.inference.hamiltonian.warmup import HamiltonianChains, WarmUp
from components.maths.exponential.standard_draws import standard_uniform
from components.registry import register

# minimum leapfrog steps of a trajectory while the chains search for the target, with chees
CHEES_SEARCH_STEPS = 32
SEARCH_STEPS = 64  # maximum with the other trajectories


@register("inference", "hmc")
class HMC(WarmUp):
    """Hamiltonian Monte Carlo with C parallel chains, tuned in warm-up.

    Warm-up learns the step size, masses and trajectory length.  r ~ N(0, M); (θ′, r′) = L
    leapfrog steps of size ε from (θ, r); θ ← θ′ with probability min(1, e^{H(θ, r) − H(θ′,
    r′)}), H(θ, r) = −log π(θ) + ½ rᵀM⁻¹r, θ and r [C, P].  L = ⌈t/ε⌉ with t = T (``fixed``,
    then with steps of T/L), or t = h_m T with Halton's h_m in (0, 1) (``jittered``, and
    ``chees``, which also learns T); all chains share it, so that no chain waits for others.  T
    ascends ChEES by ``chees.slope`` and ``chees.Length``; their docstrings have the update rule.
    It restarts at the end of the initial steps.  ``count_steps`` bounds L while the chains search
    for the target.

    In warm-up ε is set by dual averaging, M⁻¹ is the covariance of the chains in windows of
    doubling length, and states are discarded; after warm-up nothing is adapted.  T is in units of
    time of the learned masses: about π/2 is best for a Gaussian.  A trajectory with an energy error
    over 1000 has diverged: it is rejected and counted.

    (Bardenet prints e^{−H(q,p)−H(q′,p′)}, a misprint.)  Raises NumericalError if the warm-up finds
    no step size.

    Source: Bardenet (2021), section 4.4; Gallego (2021), section 2.2.1; Hoffman, Radul &
    Sountsov (2021), Algorithm 1.
    """

    requires = Requirements(
        kinds={"density", "supervised", "sequence", "unlabelled"},
    )
    trajectory: Literal["fixed", "jittered", "chees"]
    length: PositiveFloat
    max_steps: PositiveInt

    @model_validator(mode="after")
    def _check_chees_chains(self) -> HMC:
        if self.trajectory == "chees" and self.chains < 2:
            raise ValueError(
                "chains: chees requires several chains; use 2 or more, or trajectory=jittered"
            )
        if self.trajectory == "chees" and self.warmup == 0:
            raise ValueError(
                "warmup: chees adapts during warm-up; use 1 or more, or trajectory=jittered"
            )
        return self

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> HamiltonianChains:
        state = super().init(model, problem, rng)
        return replace(state, length=chees.Length.of(self.length))

    def count_steps(self, time: float, eps: float, t: int) -> int:
        """Number of steps L of step t, for a trajectory of length ``time`` with steps of ε.

        While the chains search for the target, the masses are wrong and so are times in their
        units.  In its initial steps ``chees`` takes at least min(32, T/ε), T the key ``length``;
        otherwise the chains would drift in single steps and the masses would be learned from the
        drift.  (Until the second-to-last window and with 64, it left too few steps of a small
        warm-up to learn T.)  The other trajectories take at most 64 until the second-to-last
        window of masses ends, if masses are learned.
        """
        n_steps = math.ceil(time / eps)
        if self.trajectory == "chees":
            if t <= windows(self.warmup)[0]:
                n_steps = max(n_steps, min(CHEES_SEARCH_STEPS, math.ceil(self.length / eps)))
        elif self.mass != "identity" and t <= last_search_step(self.warmup):
            n_steps = min(n_steps, SEARCH_STEPS)
        return min(n_steps, self.max_steps)

    def step(
        self, state: HamiltonianChains, batch: ModelBatch, rng: Rng
    ) -> tuple[HamiltonianChains, Info]:
        z, tuning = self.ready(state, batch, rng)
        mass = tuning.mass
        eps = tuning.step_size
        length = state.length
        t = state.t + 1
        assert length is not None  # set by ``init``
        learns = self.trajectory == "chees" and t <= self.warmup
        initial = windows(self.warmup)[0]
        # discard the statistics from before the chains reached the target
        if learns and t in (1, initial + 1):
            length = chees.Length.of(eps)
        time = length.value * (1.0 if self.trajectory == "fixed" else chees.halton(t))
        n_steps = self.count_steps(time, eps, t)
        if self.trajectory == "fixed":
            eps = min(eps, time / n_steps)

        energy = z.energy(mass)  # [C]
        proposed = leapfrog(self.target(state.model), batch, mass, eps, z, n_steps)
        proposed_energy = proposed.energy(mass)
        error = energy_error(proposed_energy, energy)
        rate = acceptance(error)
        diverging = error > DIVERGENT  # [C], [C]
        accepted = standard_uniform(rate.shape, rng.noise, rate) < rate
        after = Phase.where(accepted, proposed, z)

        # with ``fixed`` and ``jittered``, small steps would cut all trajectories off at max_steps
        mean_rate = harmonic_mean(rate) if self.trajectory == "chees" else rate.mean()
        tuning = self.learnt(tuning, state, batch, after, mean_rate, rng)
        if learns:
            length = length.learnt(
                chees.slope(z, proposed, rate, mass, n_steps * eps), self.max_steps * eps
            )
            if tuning.mass is not mass:
                length = length.stretch(mass.speed / tuning.mass.speed)
            if t == self.warmup:
                length = length.average()
        stats = {
            "acceptance_rate": rate,
            "energy": torch.where(accepted, proposed_energy, energy),
            "n_steps": torch.full_like(accepted, n_steps, dtype=torch.long),
            "step_size": torch.full_like(rate, eps),
        }
        state = self.record_transition(
            replace(state, length=length), batch, tuning, after, diverging, stats, rng
        )
        info = {
            "log_joint": after.value.mean(),
            "acceptance_rate": rate.mean(),
            "step_size": eps,
            "n_steps": n_steps,
            "divergences": state.divergences,
            "draws": len(state.kept),
        }
        return state, info
