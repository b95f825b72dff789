"""Training state and posterior of a semi-implicit q(θ), for ``sivi``, ``uivi``, ``ksivi``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.states import rebuilt
from components.contracts.streams import Rng, seed_from
from components.errors import NumericalError
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    ModelBatch,
    SampleableProblem,
    training_data,
)
from components.inference.log_joint import log_joint
from components.inference.semi_implicit.family import SemiImplicit
from components.inference.variational.ascent import climb
from components.inference.variational.guide_fit import GuideFit, find_start
from components.maths.optimizers import Optimizer
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation
from components.posteriors.variational import RefinedPosterior

CHUNK = 100  # draws per call of the log joint


@dataclass(kw_only=True)
class SemiImplicitTrainingState:
    """q(θ) in training, with a fixed seed for its draws so that scores follow q."""

    q: SemiImplicit
    optimizer: Optimizer
    seed: int
    model: LogJoint = rebuilt()
    train: ModelBatch = rebuilt()  # None: a density


class SemiImplicitVI(GuideFit[SemiImplicitTrainingState]):
    """Keys, start and posterior of a semi-implicit q(θ); ``step`` is what the methods differ in."""

    noise_dim: PositiveInt
    widths: list[PositiveInt]
    activation: Activation
    start: Literal["zero", "drawn"]
    bound_samples: NonNegativeInt

    def init(
        self, model: LogJoint, problem: SampleableProblem, rng: Rng
    ) -> SemiImplicitTrainingState:
        mean = find_start(model, problem, self.requires.batch_kind, rng, self.start)
        network = Perceptron([self.noise_dim, *self.widths, len(mean)], self.activation, rng)
        q = SemiImplicit(network, mean, self.initial_std)
        seed = seed_from(rng.init)
        optimizer = self.build_optimizer(q.parameters())
        return SemiImplicitTrainingState(
            q=q, optimizer=optimizer, seed=seed, model=model, train=training_data(problem)
        )

    def sample(self, q: SemiImplicit, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """S draws: their ε [S, E], means m(ε) and z = m(ε) + s u [S, P]."""
        epsilon = q.mixing(self.n_samples, generator)
        mean = q.mean(epsilon)
        return epsilon, mean, mean + q.std * q.conditional(self.n_samples, generator)

    def ascend(self, state: SemiImplicitTrainingState, value: Tensor, n: float) -> Tensor:
        """One step up the gradient of ``value`` over n rows: its norm [].

        Raises NumericalError when it is not finite."""
        parameters = list(state.q.parameters())
        norm = climb(parameters, torch.autograd.grad(value, parameters), n, state.optimizer)
        if not torch.isfinite(norm):
            raise NumericalError(
                "q(θ) has left the finite numbers",
                "lower inference.lr or inference.initial_std, or raise inference.n_samples",
            )
        return norm

    def posterior(self, state: SemiImplicitTrainingState) -> RefinedPosterior:
        """Two chains of independent draws, and by them the lower bound with ``bound_samples``
        further ε."""
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
