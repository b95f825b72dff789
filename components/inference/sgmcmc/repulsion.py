"""Samplers with repulsion of their particles by an RBF kernel (``maths.particles.interactions``)."""

from __future__ import annotations

from typing import Generic, Literal

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.inference.chains import C, Chains, SampleableProblem
from components.inference.sgmcmc.control_variates import GradientSteps
from components.maths.particles.interactions import (
    Interaction,
    among,
    median_bandwidth,
    square_distances,
)

Bandwidth = Literal["median"] | PositiveFloat


def check_kernel_particles(size: int | None, chains: int) -> None:
    """Raise ValueError if the block size does not divide the number of particles."""
    if size is not None and (size < 2 or chains % size):
        raise ValueError(
            f"kernel_particles: {size} is not a block size of 2 or more that divides {chains} "
            f"particles; use a divisor of inference.chains, or null"
        )


def check_positive_bandwidth(theta: Tensor, bandwidth: Bandwidth) -> None:
    """Reject a median bandwidth of 0.

    Raises NumericalError if most particles [(R,) L, P] are at the same point."""
    if bandwidth == "median" and not (median_bandwidth(square_distances(theta)) > 0).all():
        raise NumericalError(
            "the median distance of the particles is 0 at the start, so that the kernel has no "
            "bandwidth",
            "use different starts, or set inference.bandwidth to a number",
        )


class ParticleDynamics(GradientSteps[C], Generic[C]):
    """Base of samplers of particles that interact through a kernel with this bandwidth."""

    bandwidth: Bandwidth

    def start_chains(
        self, model: LogJoint, problem: SampleableProblem, rng: Rng, gradient: bool = True
    ) -> Chains:
        """Initial state of particles at draws from the model's prior, most of them at different
        points.

        Raises NumericalError like ``init_chains`` and ``check_positive_bandwidth``."""
        state = super().start_chains(model, problem, rng, gradient)
        theta = state.theta.unflatten(0, (state.replicates, self.chains))
        check_positive_bandwidth(theta, self.bandwidth)
        return state


class Repulsion(ParticleDynamics[C], Generic[C]):
    """Settings of samplers with repulsive particles.

    The particles interact up to step ``repulsion_until``; from there on K is I.

    Source: Gallego (2021), section 2.3.3.
    """

    # L, particles, at least 2; Gallego (2021) section 2.3.3 (20 for the mixture of Gaussians)
    chains: PositiveInt
    # h of k = exp(−‖z − z′‖²/h), > 0; a good fixed one is 2σ² of a mode of the target; median:
    # med²/log L at every
    # step, Liu & Wang (2016)
    bandwidth: Bandwidth
    # steps >= 0 after which particles no longer interact (half the run does no harm in Gallego
    # 2.3.3); null: they always interact
    repulsion_until: NonNegativeInt | None

    @model_validator(mode="after")
    def _check_particle_count(self) -> Repulsion[C]:
        if self.chains < 2:
            raise ValueError(
                "chains: repulsion needs at least 2 particles; for a single chain use inference=sgld"
            )
        return self

    def repels(self, t: int) -> bool:
        """True if particles interact after t steps."""
        return self.repulsion_until is None or t < self.repulsion_until

    def interaction(self, theta: Tensor, t: int, replicates: int) -> Interaction:
        """Interaction among the particles [R·L, P] of each replicate after t steps."""
        if self.repels(t):
            return among(theta, replicates, self.bandwidth)
        return Interaction(theta, None, None, replicates)
