"""SWAG: a Gaussian fitted to the iterates of gradient descent with constant step size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import LogJoint, Network, Penalised, ThetaPredictive
from components.contracts.checks import Check
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import FinishedRun, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.averaging.path import (
    AveragedDescent,
    AveragedState,
    copy_frozen,
    training_input_batches,
    weights,
)
from components.inference.chains import init_for_training
from components.inference.log_joint import value_and_gradient
from components.inference.point.descent import frozen
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.networks import Networks
from components.posteriors.redraws import DrawsByNumber
from components.problems.supervised import Supervised
from components.registry import register

# ratio of the largest sd to the root mean square of the weights below which q is a point
LEAST_SPREAD = 1e-6


@dataclass(frozen=True, kw_only=True)
class SwagState(AveragedState):
    """Parameters in training, and the moments of the collected points."""

    # None if a network is trained that is not a density over flat θ
    model: LogJoint | None = not_checkpointed()
    # "theta" [1, P], the optimizer's tensor into which a checkpoint is loaded; or a network
    network: nn.ParameterDict | Penalised
    shown: list[Tensor] = not_checkpointed()  # rows for recomputing a network's batch normalisation
    seed: int = 0  # of the drawn networks
    mean: Tensor  # θ̄ [P]
    square: Tensor  # running mean of θ² [P]
    deviations: Tensor  # θ_i − θ̄_i of the last points [at most K, P]


@dataclass(frozen=True)
class SwagGaussian:
    """N(θ̄, ½ Σ_diag + D̂ D̂ᵀ / (2 (K − 1)))."""

    mean: Tensor  # θ̄ [P]
    std: Tensor  # √Σ_diag [P]
    deviations: Tensor  # D̂ᵀ [K, P]

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """θ = θ̄ + Σ_diag^½ z₁/√2 + D̂ z₂/√(2 (K − 1)), [n, P]; without the last term while K <
        2."""
        rank = len(self.deviations)
        shape = (n, rank + len(self.mean))
        z = standard_normal(shape, generator, self.mean)
        theta = self.mean + z[:, rank:] * self.std / math.sqrt(2)
        return (
            theta if rank < 2 else theta + z[:, :rank] @ self.deviations / math.sqrt(2 * (rank - 1))
        )


@dataclass(frozen=True)
class SwagPosterior(SwagGaussian, DrawsByNumber):
    """The Gaussian over flat θ, with fresh draws for every prediction."""

    model: ThetaPredictive

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over S networks drawn from the Gaussian, at x [B, D]; differentiable in x."""
        return self.model.predictive(self.draw(self.n_predict, generator), x)


@register("inference", "swag")
class SWAG(AveragedDescent[LogJoint | Penalised, SwagState]):
    """Stochastic weight averaging, Gaussian: moments and deviations of points of a descent.

        θ_t = θ_{t−1} − lr_t · step(−N⁻¹ ∇ log p(θ, y))       Adam or gradient descent
        θ̄ ← (n θ̄ + θ_t)/(n + 1),  θ̄² likewise from θ_t²
        D̂ ← last K of θ_t − θ̄,  Σ_diag = θ̄² − (θ̄)²
        q(θ) = N(θ̄, ½ Σ_diag + D̂ D̂ᵀ / (2 (K − 1)))

    The moments are the mean and the variances.  After ``burn_in`` lr_t is collect_lr; the
    mean is updated every ``every`` steps after ``burn_in``.  θ [P] includes all parameters of the
    log joint, also a learned log σ².

    Predictions are a mixture of ``n_predict`` draws of q; before the first point is
    collected, the current network predicts.  A model that is not a density over flat θ (dropout,
    batch normalisation) is trained as a network, with dropout; its ``n_predict`` networks are drawn
    once for each posterior, and their batch normalisation is recomputed from training rows.

    Raises:
        NumericalError: the descent becomes non-finite.

    Source: Maddox, Garipov, Izmailov, Vetrov and Wilson (2019), Algorithm 1, eq. (1).
    """

    requires = Requirements(
        kinds={"supervised"},
        capabilities=frozenset(),
        capabilities_by_kind={"supervised": {Network, Penalised}},
        alternatives_by_kind={"supervised": {LogJoint, ThetaPredictive}},
    )

    rank: PositiveInt
    n_predict: PositiveInt
    norm_rows: PositiveInt | None

    def init(self, model: LogJoint | Penalised, problem: Supervised, rng: Rng) -> SwagState:
        moving: nn.ParameterDict | Penalised
        if isinstance(model, LogJoint):
            theta = init_for_training(model, problem, self.requires.batch_kind, 1, rng).theta[
                0
            ]  # [P]
            moving = nn.ParameterDict({"theta": theta[None]})
            batches = []
            seed = 0
        else:
            moving = model
            theta = weights(model)
            batches = training_input_batches(problem, self.norm_rows)
            seed = int(torch.randint(2**62, (), generator=rng.init))
        return SwagState(
            model=model if isinstance(model, LogJoint) else None,
            network=moving,
            optimizer=self.build_optimizer(moving.parameters()),
            shown=batches,
            seed=seed,
            mean=torch.zeros_like(theta),
            square=torch.zeros_like(theta),
            deviations=theta.new_zeros(0, len(theta)),
        )

    def descend(self, state: SwagState, batch: Batch, rng: Rng) -> Info:
        if not isinstance(state.network, nn.ParameterDict):
            return super().descend(state, batch, rng)
        assert state.model is not None
        parameter = state.network["theta"]
        value, gradient = value_and_gradient(state.model, parameter, batch)  # [1], [1, P]
        parameter.grad = -gradient / (batch.scale * len(batch.x))
        state.optimizer.step()
        weights(state.network)  # raises if not finite
        return {"log_joint": value[0], "grad_norm": gradient.norm()}

    def collect(self, state: SwagState, theta: Tensor) -> SwagState:
        """The moments after adding a point θ [P]."""
        n = state.n
        mean = (n * state.mean + theta) / (n + 1)
        square = (n * state.square + theta.square()) / (n + 1)
        deviations = torch.cat([state.deviations, (theta - mean)[None]])[-self.rank :]
        return replace(state, mean=mean, square=square, deviations=deviations)

    def checks(self, run: FinishedRun) -> list[Check]:
        """Check that q has a spread.

        Variances below the rounding error of θ̄² − (θ̄)² count as zero, and so does a spread
        that is negligible relative to the size of the weights.
        """
        state: SwagState = run.state
        name = "SWAG's Gaussian has a spread"
        if state.n < 2:
            detail = f"{state.n} points collected, 2 needed; raise steps, or lower inference.burn_in or every"
            return [Check(name, False, detail)]
        variance = state.square - state.mean.square()
        rounding = 10 * torch.finfo(state.mean.dtype).eps * state.square
        constant = (variance <= rounding).double().mean()  # share of the coordinates
        largest = variance.clamp_min(0).max()
        negligible = largest <= LEAST_SPREAD**2 * state.mean.square().mean()
        collapsed = bool(constant == 1) or bool(negligible)
        detail = f"{state.n} points, {float(constant):.1%} of the weights have no variance"
        detail += f", largest sd {float(largest.sqrt()):.2g}" if constant < 1 else ""
        detail += "; raise inference.collect_lr" if collapsed else ""
        return [Check(name, not collapsed, detail)]

    def posterior(self, state: SwagState) -> SwagPosterior | Networks[Penalised]:
        network = state.network
        std = (state.square - state.mean.square()).clamp_min(0).sqrt()
        if isinstance(network, nn.ParameterDict):
            assert isinstance(state.model, ThetaPredictive)
            mean = state.mean if state.n else network["theta"].detach()[0].clone()
            return SwagPosterior(mean, std, state.deviations, state.model, n_predict=self.n_predict)
        if not state.n:
            return Networks((frozen(network),))
        generator = torch.Generator(device=std.device).manual_seed(state.seed)
        theta = SwagGaussian(state.mean, std, state.deviations).draw(self.n_predict, generator)
        return Networks(tuple(copy_frozen(network, row, state.shown) for row in theta))
