"""Training states and posteriors of a semi-implicit q: of parameters for ``sivi``, ``uivi`` and
``ksivi``, of the latent variables of rows for ``sivi`` and ``uivi``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LatentVariable, LogJoint, RowGuide
from components.contracts.problems import RowBatch, Rows
from components.contracts.requirements import Requirements
from components.contracts.states import rebuilt
from components.contracts.streams import Rng, seed_from
from components.errors import NumericalError
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    NEEDS_TO_PREDICT,
    SAMPLER_OUTPUTS,
    ModelBatch,
    SampleableProblem,
    training_data,
)
from components.inference.log_joint import log_joint
from components.inference.semi_implicit.family import MixedGaussian, SemiImplicit
from components.inference.semi_implicit.rows import (
    EncoderState,
    SemiImplicitEncoder,
    SemiImplicitRowPosterior,
)
from components.inference.variational.ascent import climb
from components.inference.variational.guide_fit import GuideFit, find_start
from components.maths.optimizers import Optimizer
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation
from components.posteriors.variational import RefinedPosterior
from components.problems.unlabelled import Unlabelled

CHUNK = 100  # draws per call of the log joint


@dataclass(kw_only=True)
class SemiImplicitTrainingState:
    """q(θ) in training, with a fixed seed for its draws so that scores follow q."""

    q: SemiImplicit
    optimizer: Optimizer
    seed: int
    model: LogJoint = rebuilt()
    train: ModelBatch = rebuilt()  # None: a density


AnyState = SemiImplicitTrainingState | EncoderState


class SemiImplicitVI(GuideFit[AnyState]):
    """Keys, start and posterior of a semi-implicit q(θ), or q(z|x) of rows; ``step`` is what the
    methods differ in."""

    noise_dim: PositiveInt
    widths: list[PositiveInt]
    activation: Activation
    start: Literal["zero", "drawn"]
    bound_samples: NonNegativeInt

    def init(
        self, model: LogJoint | LatentVariable[RowBatch], problem: SampleableProblem, rng: Rng
    ) -> AnyState:
        if isinstance(problem, Unlabelled):
            assert isinstance(model, LatentVariable)
            return self.init_encoder(model, rng)
        assert isinstance(model, LogJoint)
        mean = find_start(model, problem, self.requires.batch_kind, rng, self.start)
        network = Perceptron([self.noise_dim, *self.widths, len(mean)], self.activation, rng)
        q = SemiImplicit(network, mean, self.initial_std)
        seed = seed_from(rng.init)
        optimizer = self.build_optimizer(q.parameters())
        return SemiImplicitTrainingState(
            q=q, optimizer=optimizer, seed=seed, model=model, train=training_data(problem)
        )

    def init_encoder(self, model: LatentVariable[RowBatch], rng: Rng) -> EncoderState:
        """A semi-implicit encoder next to the model's own, which takes no part."""
        assert isinstance(model, RowGuide)
        sizes = [model.context_dim + self.noise_dim, *self.widths, model.latent_dim]
        network = Perceptron(sizes, self.activation, rng)
        module = SemiImplicitEncoder(model, network, self.initial_std)
        optimizer = self.build_optimizer(module.parameters())
        return EncoderState(module=module, optimizer=optimizer, seed=seed_from(rng.init))

    def sample(self, q: MixedGaussian, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """S draws: their ε [S, E], means m(ε) and z = m(ε) + s u [S, P]; of rows [S, B, …]."""
        epsilon = q.mixing(self.n_samples, generator)
        mean = q.mean(epsilon)
        return epsilon, mean, mean + q.std * q.conditional(self.n_samples, generator)

    def ascend(self, state: AnyState, value: Tensor, n: float) -> Tensor:
        """One step up the gradient of ``value`` over n rows, of all parameters that it depends on:
        its norm [].

        Raises NumericalError when it is not finite."""
        q = state.module if isinstance(state, EncoderState) else state.q
        parameters = list(q.parameters())
        # the encoder of the model itself takes no part
        gradients = torch.autograd.grad(value, parameters, allow_unused=True)
        norm = climb(parameters, gradients, n, state.optimizer)
        if not torch.isfinite(norm):
            raise NumericalError(
                "q has left the finite numbers",
                "lower inference.lr or inference.initial_std, or raise inference.n_samples",
            )
        return norm

    def posterior(self, state: AnyState) -> RefinedPosterior | SemiImplicitRowPosterior:
        """Two chains of independent draws, and by them the lower bound with ``bound_samples``
        further ε; of rows q(z|x) itself, which is weighed by as many."""
        if isinstance(state, EncoderState):
            return SemiImplicitRowPosterior(state.module, self.bound_samples, state.seed)
        q = state.q
        n = INDEPENDENT_CHAINS * self.draws
        generator = torch.Generator(q.log_std.device).manual_seed(state.seed)
        with torch.no_grad():
            means = q.mean(q.mixing(n, generator))
            theta = means + q.std * q.conditional(n, generator)
            others = q.mean(q.mixing(self.bound_samples, generator))
            parts = zip(theta.split(CHUNK), means.split(CHUNK), strict=True)
            bounds = [
                log_joint(state.model, z, state.train) - q.log_surrogate(z, m, others)
                for z, m in parts
            ]
        return RefinedPosterior(
            theta.unflatten(0, (INDEPENDENT_CHAINS, self.draws)),
            means.detach().unflatten(0, (INDEPENDENT_CHAINS, self.draws))[:, 0],
            list(state.model.names),
            state.model,
            objective=float(torch.cat(bounds).mean()),
            bounds=True,
        )


def rows_of(batch: ModelBatch) -> float:
    """N, the number of rows that a minibatch represents; 1 for a density."""
    return 1.0 if batch is None else batch.scale * batch.n_rows


def given(state: AnyState, batch: ModelBatch) -> tuple[MixedGaussian, float]:
    """q as a step sees it, and the number of rows that a mean over its latent variables represents
    (1 of parameters, which all rows share)."""
    if isinstance(state, EncoderState):
        assert isinstance(batch, Rows)
        return state.module.given(batch), rows_of(batch)
    return state.q, 1.0


def joint_at(state: AnyState, z: Tensor, batch: ModelBatch) -> Tensor:
    """log p(x, z) of z [S, P]: [S]; of rows log p(x_b, z) of z [S, B, D]: [S, B]."""
    if isinstance(state, EncoderState):
        assert isinstance(batch, Rows)
        return state.module.model.log_joint(batch, z)
    return log_joint(state.model, z, batch)


class SemiImplicitRowsVI(SemiImplicitVI):
    """A method that trains an encoder of rows too."""

    requires = Requirements(
        kinds={"density", "supervised", "unlabelled"},
        capabilities=frozenset(),
        capabilities_by_kind={
            "density": {"log_joint"},
            "supervised": {"log_joint"} | NEEDS_TO_PREDICT["supervised"],
            "unlabelled": {"latent_variable", "row_guide"},
        },
    )
    provides = frozenset()
    provides_by_kind = {
        "density": SAMPLER_OUTPUTS | {"analyses"},
        "supervised": SAMPLER_OUTPUTS | {"analyses"},
        "unlabelled": {"bounds_likelihood", "holds_module"},
    }
