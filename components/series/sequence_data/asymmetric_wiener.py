"""The Wiener velocity model with asymmetric observation noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import SplitNormal
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.linear_gaussian import StateSource
from components.series.sequence import LinearGaussianSystem, Sequence
from components.series.sequence_data.realised import SimulatedSeries
from components.series.sequence_data.wiener_velocity import WienerVelocity


@register("dataset", "asymmetric_wiener")
class AsymmetricWiener(SimulatedSeries):
    """Wiener velocity model with observation noise of a ten times larger scale above than below.

    States as in ``wiener_velocity``; y_t = H x_t + ε_t with ε_t = −s_− |z_t| or +s_+ |z_t|, z_t ~
    N(0, I), each with probability ½: the density of each coordinate is 1{ε ≤ 0} N(ε | 0, s_−²) +
    1{ε > 0} N(ε | 0, s_+²), which jumps at 0.  ``coin`` selects one toss for both coordinates of a
    time, as in the simulator published with the thesis, or one for each, as in (6.19).  States are
    [1, T, 4], or [R, T, 4] with ``states: own``, observations [R, T, 2].  ``means`` are H x_t, the
    observations without noise.

    Raises:
        NumericalError: Q is too small to be factorised.

    Source: Boustati (2021), eq. (6.19) and appendix D.3.5.
    """

    traits = {"several_numbers"}
    simulates = {SplitNormal}
    delta: PositiveFloat
    x0: Annotated[list[float], Field(min_length=4, max_length=4)]
    prior_sd: PositiveFloat
    below: PositiveFloat
    above: PositiveFloat
    coin: Literal["shared", "each"]
    states: StateSource

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        symmetric = WienerVelocity(
            name="wiener_velocity",
            n_steps=self.n_steps,
            delta=self.delta,
            x0=self.x0,
            noise_sd=1.0,
            prior_sd=self.prior_sd,
            prior_mean=None,
            realisation="simulated",
            states=self.states,
            rate=0.0,
            observed="own",
            scored_on="own",
            score_weights="equal",
            score_late=False,
        )
        problem = symmetric.load(rng, setting)
        means = problem.means
        redraw = problem.redraw
        assert means is not None
        assert redraw is not None
        assert isinstance(problem.system, LinearGaussianSystem)

        def observe(symmetric: Tensor, generator: torch.Generator) -> Tensor:
            size = (symmetric - means).abs()  # |z|  # [R, T, 2]
            shape = (*size.shape[:2], 1 if self.coin == "shared" else size.shape[2])
            below = (torch.rand(shape, generator=generator, dtype=torch.float64) < 0.5).to(
                size.device
            )
            return means + torch.where(below, -self.below * size, self.above * size)

        return replace(
            problem,
            name=self.name,
            observations=observe(problem.observations, rng.data),
            redraw=lambda generator: observe(redraw(generator), generator),
            system=SplitNormal(**vars(problem.system), below=self.below, above=self.above),
        )
