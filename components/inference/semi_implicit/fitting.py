"""Training states and posteriors of a semi-implicit q: over parameters for ``sivi``, ``uivi`` and
``ksivi``, over the latent variables of rows for ``sivi`` and ``uivi``."""

from __future__ import annotations

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LatentVariable, LogJoint, RowGuide
from components.contracts.posteriors import BoundsLikelihood, HoldsModule
from components.contracts.problems import RowBatch, Rows
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    NEEDS_TO_PREDICT,
    ModelBatch,
    SampleableProblem,
)
from components.inference.log_joint import log_joint
from components.inference.semi_implicit.family import MixedGaussian, SemiImplicit
from components.inference.semi_implicit.rows import SemiImplicitEncoder, SemiImplicitRowPosterior
from components.inference.variational.ascent import rows_of
from components.inference.variational.guide_fit import FIT_OUTPUTS, GuideState, SeededGuide
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation
from components.posteriors.variational import RefinedPosterior
from components.problems.unlabelled import Unlabelled

CHUNK = 100  # draws per call of the log joint


AnyState = GuideState[SemiImplicit | SemiImplicitEncoder]


class SemiImplicitVI(SeededGuide[AnyState]):
    """Keys, start and posterior of a semi-implicit q(θ), or q(z|x) for rows; subclasses define
    ``step``."""

    noise_dim: PositiveInt
    widths: list[PositiveInt]
    activation: Activation
    bound_samples: NonNegativeInt

    def init(
        self, model: LogJoint | LatentVariable[RowBatch], problem: SampleableProblem, rng: Rng
    ) -> AnyState:
        q: SemiImplicit | SemiImplicitEncoder
        if isinstance(problem, Unlabelled):
            assert isinstance(model, LatentVariable)
            assert isinstance(model, RowGuide)
            sizes = [model.context_dim + self.noise_dim, *self.widths, model.latent_dim]
            network = Perceptron(sizes, self.activation, rng)
            # an encoder in addition to the model's own, which is not used
            q = SemiImplicitEncoder(model, network, self.initial_std)
        else:
            assert isinstance(model, LogJoint)
            mean = self.find_mean(model, problem, rng)
            network = Perceptron([self.noise_dim, *self.widths, len(mean)], self.activation, rng)
            q = SemiImplicit(network, mean, self.initial_std)
        return self.begin(q, model, problem, rng)

    def posterior(self, state: AnyState) -> RefinedPosterior | SemiImplicitRowPosterior:
        """Two chains of independent draws with the lower bound from ``bound_samples`` further ε;
        for rows q(z|x) itself, weighted with the same number of ε."""
        q = state.q
        if isinstance(q, SemiImplicitEncoder):
            return SemiImplicitRowPosterior(q, self.bound_samples, state.seed)
        n = INDEPENDENT_CHAINS * self.draws
        generator = torch.Generator(q.log_std.device).manual_seed(state.seed)
        with torch.no_grad():
            _, means, theta = q.sample(n, generator)
            others = q.mean(q.mixing(self.bound_samples, generator))
            parts = zip(theta.split(CHUNK), means.split(CHUNK), strict=True)
            bounds = [
                log_joint(state.model, z, state.train) - q.log_surrogate(z, m, others)
                for z, m in parts
            ]
        start = means.detach().unflatten(0, (INDEPENDENT_CHAINS, self.draws))[:, 0]
        return self.to_posterior(state.model, theta, start, torch.cat(bounds))


def q_and_weight(state: AnyState, batch: ModelBatch) -> tuple[MixedGaussian, float]:
    """q for the current step, and the number of rows represented by a mean over its latent
    variables (1 for parameters, which all rows share)."""
    if isinstance(state.q, SemiImplicitEncoder):
        assert isinstance(batch, Rows)
        return state.q.given(batch), rows_of(batch)
    return state.q, 1.0


def joint_at(state: AnyState, z: Tensor, batch: ModelBatch) -> Tensor:
    """log p(x, z) at z [S, P]: [S]; for rows log p(x_b, z) at z [S, B, D]: [S, B]."""
    if isinstance(state.q, SemiImplicitEncoder):
        assert isinstance(batch, Rows)
        return state.q.model.log_joint(batch, z)
    return log_joint(state.model, z, batch)


class SemiImplicitRowsVI(SemiImplicitVI):
    """A method that can also train an encoder of rows."""

    requires = Requirements(
        kinds={"density", "supervised", "unlabelled"},
        capabilities=frozenset(),
        capabilities_by_kind={
            "density": {LogJoint},
            "supervised": {LogJoint} | NEEDS_TO_PREDICT["supervised"],
            "unlabelled": {LatentVariable, RowGuide},
        },
    )
    provides_by_kind = {
        "density": FIT_OUTPUTS,
        "supervised": FIT_OUTPUTS,
        "unlabelled": {BoundsLikelihood, HoldsModule},
    }
