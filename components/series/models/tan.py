"""Terrain-aided navigation: an aircraft with an elevation map of the ground."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from components.contracts.capabilities import TerrainAided
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.maths.compiled import terrain
from components.maths.compiled.elevation_map import elevation
from components.maths.particles.draws import standard_normal, standard_normal_like
from components.registry import register
from components.series.sequence import Sequence


def _numbers(x: Tensor) -> bool:
    """True if a tensor holds plain values, without autograd or torch.func tracking."""
    if x.requires_grad or forward_ad.unpack_dual(x).tangent is not None:
        return False
    try:
        x.data_ptr()
    except RuntimeError:  # inside a transformation of torch.func
        return False
    return True


class TerrainModule(nn.Module):
    """Model with additive Gaussian noise: ``StateSpace``, ``AdditiveGaussian`` and more."""

    m0: Tensor
    prior_sd: Tensor
    motion_sd: Tensor
    Q: Tensor
    P0: Tensor
    Sigma: Tensor

    def __init__(self, system: TerrainAided, compiled: bool):
        super().__init__()
        self.delta = system.delta
        self.dem = system.dem
        self.takeoff = system.takeoff
        self.noise_sd = system.noise_sd
        self.compiled = compiled
        for name in ("m0", "prior_sd", "motion_sd"):
            self.register_buffer(name, getattr(system, name).clone())
        self.register_buffer("Q", self.motion_sd.square().diag())
        self.register_buffer("P0", self.prior_sd.square().diag())
        self.register_buffer("Sigma", system.noise_sd**2 * torch.eye(2).to(self.m0))
        self._last: tuple[Tensor, int, Tensor] | None = None

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        z = standard_normal((*shape, 6), generator, self.m0)
        return self.m0 + self.prior_sd * z.to(self.m0.device)  # [R, N, 6]

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        # Stored coordinate by coordinate: vector instructions are slow on six numbers.
        z = standard_normal_like(x, generator)
        z.mul_(self.motion_sd).add_(x)  # in place: nothing else holds z
        z[..., :3].add_(x[..., 3:], alpha=self.delta)
        return z  # eq. (6.16)  # [R, N, 6]

    def transition_mean(self, x: Tensor, t: int) -> Tensor:
        mean = x.clone()
        mean[..., :3].add_(x[..., 3:], alpha=self.delta)
        return mean  # A x  # [R, N, 6]

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        whitened = (x - self.transition_mean(x_prev, t)) / self.motion_sd
        # [R, N]
        return -0.5 * whitened.square().sum(-1) - self.motion_sd.log().sum() - 3 * LOG_2PI

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        """h(x) [R, N, 2]; cached for the last particles."""
        if not _numbers(x):
            return self._look(x)
        if self._last is None or self._last[0] is not x or self._last[1] != x._version:
            if self.compiled and x.device.type == "cpu":
                measurement = terrain.height_and_distance(x, self.takeoff, self.dem)
            else:
                measurement = self._look(x)
            self._last = x, x._version, measurement
        return self._last[2]

    def _look(self, x: Tensor) -> Tensor:
        east = x[..., 0] - self.takeoff[0]
        north = x[..., 1] - self.takeoff[1]
        height = x[..., 2] - elevation(x[..., 0], x[..., 1], self.dem)
        return torch.stack([height, torch.sqrt(east.square() + north.square())], -1)

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        height, distance = self.observation_mean(x, t).unbind(-1)  # [R, N]
        squares = (height - y[..., :1]).square() + (distance - y[..., 1:]).square()
        return self.log_observation_bound(t) - squares / (2 * self.noise_sd**2)  # eq. (6.18)

    def log_observation_bound(self, t: int) -> float:
        """log sup N(y | h(x), s² I) = −log 2π − 2 log s."""
        return -LOG_2PI - 2 * math.log(self.noise_sd)

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ N(y | h(x), s² I)^a dy = (1 − a)(log 2π + 2 log s) − log a, the same for every x;
        []."""
        value = -(1 - power) * self.log_observation_bound(t) - math.log(power)
        return torch.as_tensor(value, device=x.device, dtype=x.dtype)


@register("model", "tan")
class TerrainNavigation(Model[Sequence, TerrainModule]):
    """Terrain-aided navigation: the position of an aircraft from its height above ground and its
    distance from the point of take-off.

    x_t = A x_{t−1} + N(0, Q), y_t = (z − DEM(x, y), √((x − x_0)² + (y − y_0)²)) + N(0, s² I),
    particles [R, N, 6] of positions and velocities in x, y and z; parameters and elevation map come
    from the simulated data.  The model ignores any contamination.  Raises ConfigMismatchError on
    data of another system.

    Source: Boustati (2021), eqs. (6.16), (6.18) and appendix D.3.4."""

    requires = Requirements(kinds={"sequence"}, simulated={TerrainAided})
    compiled: bool

    def build(self, problem: Sequence, rng: Rng) -> TerrainModule:
        if not isinstance(problem.system, TerrainAided):
            raise ConfigMismatchError(
                f"model={self.name}: needs a flight over known terrain, unlike dataset={problem.name}"
            )
        return TerrainModule(problem.system, self.compiled)
