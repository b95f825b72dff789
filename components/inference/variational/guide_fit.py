"""Common keys of methods that fit a family q(θ) to a log joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import LogJoint
from components.contracts.capabilities.modules import Trainable
from components.contracts.checks import Check
from components.contracts.posteriors import (
    Analyses,
    Forecasts,
    HoldsDraws,
    Predicts,
    Redraws,
    WritesFiles,
)
from components.contracts.problems import BatchKind
from components.contracts.requirements import Requirements
from components.contracts.roles import FinishedRun, Gradient, Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, seed_from
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    NEEDS_TO_PREDICT,
    ModelBatch,
    SampleableProblem,
    init_chains,
    training_data,
)
from components.inference.point.descent import DescentKeys
from components.inference.variational.ascent import TrainingState, ascend_parameters
from components.maths.optimizers import Optimizer
from components.metrics import limits
from components.metrics.importance_weights import FEWEST_WEIGHTS, pareto_k
from components.posteriors.variational import RefinedPosterior
from components.problems.density import Density

S = TypeVar("S")
T = TypeVar("T", bound=TrainingState[Any])
# protocols of the draws of q(θ), with their bound
FIT_OUTPUTS = frozenset({Analyses, Forecasts, HoldsDraws, Predicts, Redraws, WritesFiles})


class GuideFit(Inference[LogJoint, SampleableProblem, ModelBatch, S], DescentKeys, Generic[S]):
    """Base of methods that fit q(θ) by gradients; the posterior holds independent draws of q."""

    requires = Requirements(
        kinds={"density", "supervised"},
        capabilities={LogJoint},
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    mixes = False  # independent draws of a fit
    folds_replicates = frozenset()

    n_samples: PositiveInt
    initial_std: PositiveFloat
    draws: PositiveInt

    def to_posterior(
        self, model: LogJoint, theta: Tensor, start: Tensor, bound: Tensor
    ) -> RefinedPosterior:
        """Independent draws θ [2 · draws, P] as two chains with starts [2, P], and the mean bound
        on the evidence."""
        draws = theta.unflatten(0, (INDEPENDENT_CHAINS, self.draws))
        value = float(bound.mean())
        return RefinedPosterior(
            draws, start, list(model.names), model, objective=value, bounds=True
        )


Q = TypeVar("Q", bound=Trainable, default=Any)


@dataclass(kw_only=True)
class GuideState(Generic[Q]):
    """q(θ) in training, with a fixed seed for its draws so that scores follow q."""

    q: Q
    optimizer: Optimizer
    seed: int
    model: Any = not_checkpointed()  # guide of the parameters θ, or of the latent variables of rows
    train: ModelBatch = not_checkpointed()  # None for a density


class SeededGuide(GuideFit[S], Generic[S]):
    """Base of methods that draw their posterior from q with a stored seed."""

    start: Literal["zero", "drawn"]

    def find_mean(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> Tensor:
        """Initial mean of q [P]."""
        return find_start(model, problem, self.requires.batch_kind, rng, self.start)

    def begin(self, q: Q, model: object, problem: SampleableProblem, rng: Rng) -> GuideState[Q]:
        return GuideState(
            q=q,
            optimizer=self.build_optimizer(q.parameters()),
            seed=seed_from(rng.init),
            model=model,
            train=training_data(problem),
        )


@dataclass
class GlobalTrainingState(TrainingState[Q]):
    """q(θ) in training."""

    # ε [2, draws, P] of the returned posterior: fixed, so that scores change only with q
    base: Tensor
    model: LogJoint = not_checkpointed()
    train: ModelBatch = not_checkpointed()  # None for a density


class AscendedGuide(GuideFit[T], Generic[T]):
    """Base of methods that maximise the bound of a q(θ) with a density, with any estimator of its
    gradient."""

    # keys inherited by the gradient estimator
    inherited_keys = {"n_samples"}

    gradient: Gradient

    def begin(
        self, q: Q, base: Tensor, model: LogJoint, problem: SampleableProblem, rng: Rng
    ) -> GlobalTrainingState[Q]:
        return GlobalTrainingState(
            q,
            self.build_optimizer(q.parameters()),
            self.gradient.init(q, rng),
            base,
            model,
            training_data(problem),
        )

    def step(self, state: T, batch: ModelBatch, rng: Rng) -> tuple[T, Info]:
        return ascend_parameters(state, self.gradient, batch, rng)

    @torch.no_grad()
    def checks(self, run: FinishedRun) -> list[Check]:
        """Check that draws θ [S, P] of q can be reweighted to the density π of a problem, by the
        shape k̂ of log π(θ) − log q(θ).

        Source: Yao et al. (2018), section 3.2."""
        if not isinstance(run.problem, Density):
            return []
        assert isinstance(run.posterior, HoldsDraws)
        theta = run.posterior.flat
        name = "q is close enough to weight its draws: Pareto k̂ is below its limit"
        if len(theta) < FEWEST_WEIGHTS:
            detail = f"{len(theta)} draws, {FEWEST_WEIGHTS} needed; raise inference.draws"
            return [Check(name, None, detail)]
        value = pareto_k(run.problem.log_density(theta) - run.state.module.log_density(theta))
        most = limits.pareto_k(len(theta))
        detail = f"k {value:.2f} of {len(theta)} draws, required below {most:.2f}"
        return [Check(name, value < most, detail)]


def find_start(
    model: LogJoint,
    problem: SampleableProblem,
    batch_kind: BatchKind,
    rng: Rng,
    start: str,
    gradient: bool = True,
) -> Tensor:
    """Initial point [P] of q: 0 for the start ``zero``, otherwise as in ``init_chains``.

    Raises:
        NumericalError: as in ``init_chains``.
    """
    begin = torch.zeros_like(model.sample_prior(1, rng.init)) if start == "zero" else None
    return init_chains(model, problem, batch_kind, 1, rng, begin, gradient).start[0]
