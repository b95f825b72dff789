"""Unknown parameters of state-space models: their priors, and their unconstrained coordinates for
samplers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.roles import StrictKeys
from components.maths.bijectors import POSITIVE, Interval, LowerBounded
from components.maths.cholesky import LOG_2PI


class Law(StrictKeys):
    """Prior of one parameter x = x(θ), θ unconstrained; its fields are the keys of the YAML."""

    bijector: ClassVar[LowerBounded | Interval | None] = None  # from θ to x; None if x is θ

    @property
    def centre(self) -> float:
        raise NotImplementedError

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Values of the parameter [n], in float64."""
        raise NotImplementedError

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) of the parameter itself."""
        raise NotImplementedError

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """x(θ) and log |dx/dθ|."""
        if self.bijector is None:
            return theta, torch.zeros_like(theta)
        x, log_jacobian = self.bijector.forward(theta.unsqueeze(-1))
        return x.squeeze(-1), log_jacobian

    def inverse(self, x: Tensor) -> Tensor:
        return x if self.bijector is None else self.bijector.inverse(x)


class Normal(Law):
    """x ~ N(m, s²)."""

    law: Literal["normal"]
    mean: float
    sd: PositiveFloat

    @property
    def centre(self) -> float:
        return self.mean

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        return self.mean + self.sd * _normal(n, generator)

    def log_density(self, x: Tensor) -> Tensor:
        return _log_normal(x, self.mean, self.sd)


class HalfNormal(Law):
    """x = |z|, z ~ N(0, s²)."""

    bijector = POSITIVE
    law: Literal["half_normal"]
    scale: PositiveFloat

    @property
    def centre(self) -> float:
        return 0.6744897501960817 * self.scale  # the median

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        return self.scale * _normal(n, generator).abs()

    def log_density(self, x: Tensor) -> Tensor:
        return math.log(2) + _log_normal(x, 0.0, self.scale)


class LogNormal(Law):
    """log x ~ N(log m, s²)."""

    bijector = POSITIVE
    law: Literal["log_normal"]
    median: PositiveFloat
    spread: PositiveFloat

    @property
    def centre(self) -> float:
        return self.median

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        return self.median * (self.spread * _normal(n, generator)).exp()

    def log_density(self, x: Tensor) -> Tensor:
        return _log_normal(x.log(), math.log(self.median), self.spread) - x.log()


class StretchedBeta(Law):
    """(x + 1)/2 ~ Beta(a, b), x in (−1, 1)."""

    bijector = Interval(-1.0, 1.0)
    law: Literal["beta"]
    a: PositiveFloat
    b: PositiveFloat

    @property
    def centre(self) -> float:
        return (self.a - self.b) / (self.a + self.b)  # the mean

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        shapes = torch.tensor(
            [[self.a], [self.b]], device=generator.device, dtype=torch.float64
        ).expand(-1, n)
        up, down = torch._standard_gamma(shapes.contiguous(), generator=generator)
        return (up - down) / (up + down)

    def log_density(self, x: Tensor) -> Tensor:
        constant = math.lgamma(self.a + self.b) - math.lgamma(self.a) - math.lgamma(self.b)
        constant -= (self.a + self.b - 1) * math.log(2)
        return (self.a - 1) * torch.log1p(x) + (self.b - 1) * torch.log1p(-x) + constant


PositivePrior = Annotated[HalfNormal | LogNormal, Field(discriminator="law")]


class UnknownParameters:
    """The P unknown parameters of a built model: ``Parameterised`` without ``at``.

    θ [K, P]; if x(θ) has prior density p(x), the density of θ is p(x(θ)) |dx/dθ|.
    """

    _laws: dict[str, Law]
    _like: Tensor

    def declare(self, laws: Mapping[str, Law], like: Tensor) -> None:
        """Declare the unknown parameters; ``like`` has the dtype and the device of θ."""
        self._laws = dict(laws)
        self._like = like.new_empty(0)

    @property
    def parameter_names(self) -> list[str]:
        return list(self._laws)

    def draw_prior(self, n: int, generator: torch.Generator) -> Tensor:
        samples = [law.inverse(law.draw(n, generator)) for law in self._laws.values()]
        return torch.stack(samples, 1).to(self._like)  # [n, P]

    @property
    def medians(self) -> Tensor:
        """θ at the centres of the priors [P]: their medians, or the mean of a stretched beta."""
        return torch.stack(
            [law.inverse(self._like.new_tensor([law.centre])) for law in self._laws.values()]
        ).squeeze(1)

    def log_prior(self, theta: Tensor) -> Tensor:
        total = theta.new_zeros(len(theta))
        for law, value in zip(self._laws.values(), theta.unbind(1), strict=True):
            x, log_jacobian = law.forward(value)
            total = total + law.log_density(x) + log_jacobian
        return total  # [K]

    def constrain(self, theta: Tensor) -> Tensor:
        return torch.stack(
            [
                law.forward(v)[0]
                for law, v in zip(self._laws.values(), theta.unbind(1), strict=True)
            ],
            1,
        )

    def by_name(self, theta: Tensor) -> dict[str, Tensor]:
        """Parameters that θ [K, P] represents, by name, [K] each."""
        return dict(zip(self._laws, self.constrain(theta).unbind(1), strict=True))


class Priors(StrictKeys):
    """Priors of the parameters of a model by name; None if known."""

    @property
    def given_priors(self) -> dict[str, Law]:
        """Priors of the unknown parameters, in the order of the model's keys."""
        return {name: law for name, law in self if law is not None}

    @property
    def centres(self) -> dict[str, float]:
        """Centres of the priors, which a model with unknown parameters takes when used directly."""
        return {name: law.centre for name, law in self.given_priors.items()}


def _normal(n: int, generator: torch.Generator) -> Tensor:
    return torch.randn(n, generator=generator, device=generator.device, dtype=torch.float64)


def _log_normal(x: Tensor, mean: float, sd: float) -> Tensor:
    return -0.5 * ((x - mean) / sd).square() - math.log(sd) - 0.5 * LOG_2PI
