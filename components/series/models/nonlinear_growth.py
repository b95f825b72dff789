"""The univariate nonlinear growth model."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI
from components.maths.particles.draws import standard_normal
from components.registry import register
from components.series.models.families import UnknownParameterModel
from components.series.models.unknown import PositivePrior, Priors, UnknownParameters
from components.series.sequence import UNIVARIATE, Sequence


def growth_mean(x: Tensor, t: int) -> Tensor:
    """E[x_t | x_{t−1} = x] = x/2 + 25x/(1 + x²) + 8 cos 1.2 t."""
    return x / 2 + 25 * x / (1 + x.square()) + 8 * math.cos(1.2 * t)


class GrowthPriors(Priors):
    """Priors of standard deviations; None if known."""

    state_sd: PositivePrior | None
    observation_sd: PositivePrior | None


class GrowthModule(nn.Module):
    """``StateSpace``, ``AdditiveGaussian`` and more; the standard deviations are [] or [R, 1, 1],
    one per replicate."""

    m0: Tensor
    P0: Tensor
    state_sd: Tensor
    observation_sd: Tensor

    def __init__(
        self, m0: float | Tensor, P0: float | Tensor, state_sd: Tensor, observation_sd: Tensor
    ):
        super().__init__()
        self.register_buffer("m0", state_sd.new_tensor(0.0).add(m0).view(1))
        self.register_buffer("P0", state_sd.new_tensor(0.0).add(P0).view(1, 1))
        self.register_buffer("state_sd", state_sd)
        self.register_buffer("observation_sd", observation_sd)

    @property
    def Q(self) -> Tensor:
        """[1, 1], or [R, 1, 1]."""
        return self.state_sd.square().view(*self.state_sd.shape[:1], 1, 1)

    @property
    def Sigma(self) -> Tensor:
        """[1, 1], or [R, 1, 1]."""
        return self.observation_sd.square().view(*self.observation_sd.shape[:1], 1, 1)

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        z = standard_normal((*shape, 1), generator, self.m0)
        return self.m0 + self.P0[0].sqrt() * z.to(self.m0.device)  # [R, N, 1]

    def transition_mean(self, x: Tensor, t: int) -> Tensor:
        return growth_mean(x, t)

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        z = standard_normal(x.shape, generator, x)
        return growth_mean(x, t) + self.state_sd * z  # [R, N, 1]

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return log_normal(x - growth_mean(x_prev, t), self.state_sd)  # [R, N]

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        return x.square() / 20  # [R, N, 1]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        # [R, N]
        return log_normal(y.unsqueeze(-2) - self.observation_mean(x, t), self.observation_sd)

    def log_observation_bound(self, t: int) -> float:
        """log sup N(y | h(x), s²) = −log s − ½ log 2π, for the smallest s."""
        return -math.log(float(self.observation_sd.min())) - 0.5 * LOG_2PI

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ N(y | h(x), s²)^a dy = ½(1 − a)(log 2π + 2 log s) − ½ log a, the same for every x;
        [] or [R, 1]."""
        log_s = self.observation_sd.log()
        value = 0.5 * (1 - power) * (LOG_2PI + 2 * log_s) - 0.5 * math.log(power)
        return value.squeeze(-1) if value.dim() else value


def log_normal(deviation: Tensor, sd: Tensor) -> Tensor:
    """log N(deviation | 0, s²) for deviations [R, N, 1] -> [R, N]."""
    return (-0.5 * (deviation / sd).square() - sd.log() - 0.5 * LOG_2PI).squeeze(-1)


class UnknownGrowth(UnknownParameters, GrowthModule):
    """``Parameterised``: standard deviations with priors.  Used directly, the model takes the
    centres of the priors."""

    def at(self, theta: Tensor) -> GrowthModule:
        sd = {name: value.view(-1, 1, 1) for name, value in self.by_name(theta).items()}
        defaults = {"state_sd": self.state_sd, "observation_sd": self.observation_sd}
        return GrowthModule(self.m0, self.P0, **(defaults | sd))


@register("model", "nonlinear_growth")
class NonlinearGrowth(UnknownParameterModel):
    """Univariate nonlinear growth model, in which only the square of the state is observed.

    The sign of the state must be inferred from its dynamics.

    x_0 ~ N(m, p²), x_t = x_{t−1}/2 + 25 x_{t−1}/(1 + x_{t−1}²) + 8 cos 1.2 t + N(0, s_x²),
    y_t = x_t²/20 + N(0, s_y²); particles [R, N, 1]. A standard deviation with a prior is
    unknown.

    Raises ConfigMismatchError for multivariate observations.

    Source: Gordon, Salmond and Smith (1993), section 4; Kitagawa (1987).
    """

    requires = UNIVARIATE

    initial_mean: float
    initial_sd: PositiveFloat
    state_sd: PositiveFloat
    observation_sd: PositiveFloat
    unknown: GrowthPriors

    def build(self, problem: Sequence, rng: Rng) -> GrowthModule:
        problem.check_one_number(f"model={self.name}")
        sd = {
            "state_sd": self.state_sd,
            "observation_sd": self.observation_sd,
        } | self.unknown.centres
        sd_tensors = {name: problem.observations.new_tensor(value) for name, value in sd.items()}
        if not self.unknown.given_priors:
            return GrowthModule(self.initial_mean, self.initial_sd**2, **sd_tensors)
        module = UnknownGrowth(self.initial_mean, self.initial_sd**2, **sd_tensors)
        module.declare(self.unknown.given_priors, problem.observations)
        return module
