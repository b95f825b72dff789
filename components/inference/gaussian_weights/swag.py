"""SWAG: a Gaussian of the points that gradient descent passes when its steps no longer shrink."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import LogJoint, ThetaPredictive
from components.contracts.posteriors import Predicts
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.roles import Inference, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.chains import PREDICTS_LABELS, untrained
from components.inference.log_joint import value_and_gradient
from components.inference.point.descent import Descent, optimizer_of
from components.maths.optimizers import Optimizer
from components.posteriors.draws import hold
from components.problems.supervised import Supervised
from components.registry import register
from components.trouble import NumericalTrouble


@dataclass(kw_only=True)
class SwagState:
    """Parameters on their way, and the moments of the points that were collected."""

    model: LogJoint = rebuilt()
    weights: nn.ParameterDict  # "theta" [1, P]; a module: a checkpoint is read into what the optimizer holds
    optimizer: Optimizer
    t: int = 0  # steps done
    n: int = 0  # points collected
    mean: Tensor  # θ̄ [P]
    square: Tensor  # running mean of θ² [P]
    deviations: Tensor  # θ_i − θ̄_i of the last of them [at most K, P]


@dataclass(frozen=True)
class SwagPosterior:
    """N(θ̄, ½ Σ_diag + D̂ D̂ᵀ / (2 (K − 1))), from which every prediction draws anew."""

    model: ThetaPredictive
    mean: Tensor  # θ̄ [P]
    std: Tensor  # √Σ_diag [P]
    deviations: Tensor  # D̂ᵀ [K, P]
    n_predict: int

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """θ = θ̄ + Σ_diag^½ z₁/√2 + D̂ z₂/√(2 (K − 1)), [n, P]; without the last term while K < 2."""
        rank = len(self.deviations)
        shape = (n, rank + len(self.mean))
        z = torch.randn(shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        theta = self.mean + z[:, rank:] * self.std / math.sqrt(2)
        return theta if rank < 2 else theta + z[:, :rank] @ self.deviations / math.sqrt(2 * (rank - 1))

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over S networks drawn from the Gaussian, at x [B, D]; differentiable in x."""
        return self.model.predictive(self.draw(self.n_predict, generator), x)

    def some(self, n: int, generator: torch.Generator | None) -> Predicts:
        """n networks behind each prediction: new ones, or always the same without a generator."""
        return hold(replace(self, n_predict=n), generator)


@register("inference", "swag")
class SWAG(Inference[LogJoint, Supervised, Batch, SwagState]):
    """Stochastic weight averaging, Gaussian: the mean, the variances and a few deviations of the points that descent passes.

        θ_t = θ_{t−1} − lr · step(−N⁻¹ ∇ log p(θ, y))         Adam or gradient descent; after ``burn_in`` collect_lr
        θ̄ ← (n θ̄ + θ_t)/(n + 1),  θ̄² likewise of θ_t²        every ``every`` steps after ``burn_in``
        D̂ ← last K of θ_t − θ̄,  Σ_diag = θ̄² − (θ̄)²
        q(θ) = N(θ̄, ½ Σ_diag + D̂ D̂ᵀ / (2 (K − 1)))          θ [P], all that the log joint has, a learned log σ² too

    What is predicted is a mixture of ``n_predict`` draws of q; before a point is collected it is the network as it stands.

    Raises:
        NumericalTrouble: the descent leaves the finite numbers.

    Source: Maddox, Garipov, Izmailov, Vetrov and Wilson (2019), Algorithm 1, eq. (1)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"log_joint"})
    needs_by_kind: ClassVar[dict[str, frozenset[str]]] = PREDICTS_LABELS
    gives: ClassVar[frozenset[str]] = frozenset({"predicts", "redraws"})

    optimizer: Descent
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    collect_lr: PositiveFloat
    burn_in: NonNegativeInt
    every: PositiveInt
    rank: PositiveInt
    n_predict: PositiveInt

    def init(self, model: LogJoint, problem: Supervised, rng: Rng) -> SwagState:
        start = untrained(model, problem, self.sees, 1, rng).theta  # [1, P]
        weights = nn.ParameterDict({"theta": start})
        return SwagState(
            model=model,
            weights=weights,
            optimizer=optimizer_of(weights.values(), self.optimizer, self.lr, self.momentum),
            mean=torch.zeros_like(start[0]),
            square=torch.zeros_like(start[0]),
            deviations=start[:0].clone(),
        )

    def step(self, state: SwagState, batch: Batch, rng: Rng) -> tuple[SwagState, Info]:
        parameter, t = state.weights["theta"], state.t + 1
        value, gradient = value_and_gradient(state.model, parameter, batch)  # [1], [1, P]
        parameter.grad = -gradient / (batch.scale * len(batch.x))
        state.optimizer.settings["lr"] = self.lr if t <= self.burn_in else self.collect_lr
        state.optimizer.step()
        theta = parameter.detach()[0]
        if not bool(torch.isfinite(theta.sum())):
            raise NumericalTrouble("the descent left the finite numbers", "lower inference.lr or inference.collect_lr")
        state = replace(state, t=t)
        if t > self.burn_in and (t - self.burn_in) % self.every == 0:
            state = self.collected(state, theta)
        return state, {"log_joint": value[0], "grad_norm": gradient.norm(), "collected": state.n}

    def collected(self, state: SwagState, theta: Tensor) -> SwagState:
        """The moments with one point θ [P] more."""
        n = state.n
        mean = (n * state.mean + theta) / (n + 1)
        square = (n * state.square + theta.square()) / (n + 1)
        deviations = torch.cat([state.deviations, (theta - mean)[None]])[-self.rank :]
        return replace(state, n=n + 1, mean=mean, square=square, deviations=deviations)

    def posterior(self, state: SwagState) -> SwagPosterior:
        assert isinstance(state.model, ThetaPredictive)
        mean = state.mean if state.n else state.weights["theta"].detach()[0].clone()
        std = (state.square - state.mean.square()).clamp_min(0).sqrt()
        return SwagPosterior(state.model, mean, std, state.deviations, self.n_predict)
