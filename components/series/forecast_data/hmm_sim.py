"""A series of classes drawn from a hidden Markov model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveFloat, PositiveInt

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.forecasting import ClassSeries, Forecasting
from components.series.maths.dirichlet import draw_simplex


@dataclass(frozen=True)
class _Path:
    """Path of a chain, drawn from rows of probabilities."""

    rows: torch.Tensor  # [S, n]

    def next(self, state: int, generator: torch.Generator) -> int:
        return int(torch.multinomial(self.rows[state], 1, generator=generator))


@register("dataset", "hmm_sim")
class HmmSim(ClassSeries):
    """A simulated hidden Markov model of S states and observations of C classes.

    A_i ~ Dir(a 1_S), B_i ~ Dir(b 1_C), z_1 uniform, z_t | z_{t−1} ~ A_{z_{t−1}}, x_t | z_t ~
    B_{z_t}; y [1, T, 1] are class numbers. Neither the length nor the printed probabilities of the
    paper's series are known: small concentrations, so that there is something to learn.  The last
    ``n_ahead`` observations are to be forecast.

    Raises ConfigMismatchError when nothing is left to learn from.

    Source: Gallego (2021), section 2.4.2 and appendix 2.B.1."""

    states: PositiveInt
    transition_concentration: PositiveFloat
    emission_concentration: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        A = _Path(draw_simplex((self.states, self.states), self.transition_concentration, rng.data))
        B = _Path(draw_simplex((self.states, self.classes), self.emission_concentration, rng.data))
        z = int(torch.randint(self.states, (), generator=rng.data))
        emissions = []
        for _ in range(self.n_steps):
            emissions.append(float(B.next(z, rng.data)))
            z = A.next(z, rng.data)
        y = torch.tensor(emissions, dtype=setting.dtype, device=setting.device).view(1, -1, 1)
        return self.hide_future(y)
