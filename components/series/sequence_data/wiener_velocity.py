"""A point in the plane with a Wiener process as its velocity, observed with noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat

from components.contracts.capabilities import LinearGaussian
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.trajectory import trajectory
from components.series.linear_gaussian import draw_drive, walk
from components.series.sequence import LinearGaussianSystem, Sequence
from components.series.sequence_data import released
from components.series.sequence_data.realised import RealisedDataset, place_system

Four = Annotated[list[float], Field(min_length=4, max_length=4)]


@register("dataset", "wiener_velocity")
class WienerVelocity(RealisedDataset):
    """Wiener velocity model: positions and velocities in the plane, with positions observed.

    x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, s² I), x = (position 1, 2, velocity 1, 2),
    time between observations Δτ.  The states are simulated from x_0; ``states`` sets whether all R
    replicates share one sequence or have their own.  Each replicate has its own observations.  The
    prior of a filter is
    x_0 ~ N(x_0, p² I), with p = 1 as in the code published with the thesis; D.3.3 prints
    N(x_0, Q).  Over 1,000 times the choice does not change any score beyond its Monte-Carlo error.
    ``realisation: released`` takes the states, and a first sequence of corrupted observations, from
    that code.

    Raises:
        NumericalError: Q is too small to be factorised.
        ConfigMismatchError: the released realisation has too few times.

    Source: Boustati (2021), section 6.5.1 and appendix D.3.3.
    """

    simulates = {LinearGaussian}
    delta: PositiveFloat
    x0: Four
    noise_sd: PositiveFloat
    prior_sd: PositiveFloat
    prior_mean: Four | None

    def system(self) -> LinearGaussianSystem:
        """A, Q, H, Σ, m_0, P_0 in float64."""
        d = self.delta
        i = torch.eye(2, dtype=torch.float64)
        o = torch.zeros_like(i)
        return LinearGaussianSystem(
            A=torch.cat([torch.cat([i, d * i], 1), torch.cat([o, i], 1)]),
            Q=torch.cat(
                [torch.cat([d**3 / 3 * i, d**2 / 2 * i], 1), torch.cat([d**2 / 2 * i, d * i], 1)]
            ),
            H=torch.cat([i, o], 1),
            Sigma=self.noise_sd**2 * i,
            m0=torch.tensor(
                self.x0 if self.prior_mean is None else self.prior_mean, dtype=torch.float64
            ),
            P0=self.prior_sd**2 * torch.eye(4, dtype=torch.float64),
        )

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        system = self.system()
        factor, failed = torch.linalg.cholesky_ex(system.Q)
        if failed:
            raise NumericalError(
                f"Cholesky of Q failed with Δτ = {self.delta}", "raise dataset.delta"
            )
        x = torch.tensor(self.x0, dtype=torch.float64)
        fixed = None
        if self.realisation == "released":
            fixed = self.cut(
                released.wiener_velocity(replace(system, m0=x), self.rate), self.n_steps
            )
            path = fixed.states
        else:
            drive = draw_drive(self.states, setting.replicates, self.n_steps, 4, rng.data)
            path = walk(system.A, x, drive @ factor.T)

        means = path @ system.H.T
        sequence = self.observe(
            rng,
            setting,
            path,
            means,
            lambda noise: means + self.noise_sd * noise,
            system=place_system(system, setting),
            state_names=["position 1", "position 2", "velocity 1", "velocity 2"],
            figures=[trajectory, coverage],
        )
        return self.apply_observation_keys(sequence, fixed)
