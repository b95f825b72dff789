"""A series of classes drawn from a hidden Markov model."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.forecasting import ClassSeries, Forecasting
from components.series.maths.dirichlet import draw_simplex


@register("dataset", "hmm_sim")
class HmmSim(ClassSeries):
    """A simulated hidden Markov model of S states and observations of C classes.

    A_i ~ Dir(a 1_S), B_i ~ Dir(b 1_C), z_1 uniform, z_t | z_{t−1} ~ A_{z_{t−1}}, x_t | z_t ~
    B_{z_t}; y [1, T, 1] are class numbers. The source gives neither the length nor the
    probabilities of its series; the defaults are small concentrations, which give structure to
    learn.  The last ``n_ahead`` observations are to be forecast.

    Raises ConfigMismatchError if no observations are left to learn from.

    Source: Gallego (2021), section 2.4.2 and appendix 2.B.1."""

    states: PositiveInt
    transition_concentration: PositiveFloat
    emission_concentration: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        A = draw_simplex((self.states, self.states), self.transition_concentration, rng.data)
        B = draw_simplex((self.states, self.classes), self.emission_concentration, rng.data)

        def draw(probabilities: Tensor) -> int:
            return int(torch.multinomial(probabilities, 1, generator=rng.data))

        z = int(torch.randint(self.states, (), generator=rng.data))
        emissions = []
        for _ in range(self.n_steps):
            emissions.append(float(draw(B[z])))
            z = draw(A[z])
        y = setting.tensor(emissions).view(1, -1, 1)
        return self.hide_future(y)
