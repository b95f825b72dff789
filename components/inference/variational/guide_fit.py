"""Common keys of methods that fit a family q(θ) to a log joint."""

from __future__ import annotations

from typing import Any, Generic

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Check
from components.contracts.posteriors import HoldsDraws
from components.contracts.problems import BatchKind
from components.contracts.requirements import Requirements
from components.contracts.roles import FinishedRun, Gradient, Inference, Info
from components.contracts.streams import Rng
from components.inference.chains import (
    NEEDS_TO_PREDICT,
    SAMPLER_OUTPUTS,
    ModelBatch,
    SampleableProblem,
    init_chains,
)
from components.inference.point.descent import DescentKeys
from components.inference.variational.ascent import TrainingState, ascend_parameters
from components.metrics import limits
from components.metrics.diagnostics import FEWEST_WEIGHTS, pareto_k
from components.problems.density import Density

S = TypeVar("S")
T = TypeVar("T", bound=TrainingState[Any])


class GuideFit(Inference[LogJoint, SampleableProblem, ModelBatch, S], DescentKeys, Generic[S]):
    """Base of methods that fit q(θ) by gradients; the posterior holds independent draws of q."""

    requires = Requirements(
        kinds={"density", "supervised"},
        capabilities={"log_joint"},
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    provides = SAMPLER_OUTPUTS | {"analyses"}
    mixes = False  # independent draws of a fit
    folds_replicates = frozenset()

    n_samples: PositiveInt
    initial_std: PositiveFloat
    draws: PositiveInt


class AscendedGuide(GuideFit[T], Generic[T]):
    """Base of methods that ascend the bound of a q(θ) with a density by any estimator of its
    gradient."""

    # keys that the gradient inherits from here
    inherited_keys = {"n_samples"}

    gradient: Gradient

    def step(self, state: T, batch: ModelBatch, rng: Rng) -> tuple[T, Info]:
        return ascend_parameters(state, self.gradient, batch, rng)

    @torch.no_grad()
    def checks(self, run: FinishedRun) -> list[Check]:
        """Check that draws θ [S, P] of q could be weighted to the density π of a problem: the
        shape k̂ of log π(θ) − log q(θ).

        Source: Yao et al. (2018), section 3.2."""
        assert isinstance(run.state, TrainingState)
        if not isinstance(run.problem, Density):
            return []
        assert isinstance(run.posterior, HoldsDraws)
        theta = run.posterior.flat
        name = "q is near enough to weight its draws: Pareto k̂ is below its limit"
        if len(theta) < FEWEST_WEIGHTS:
            detail = f"{len(theta)} draws, {FEWEST_WEIGHTS} needed; raise inference.draws"
            return [Check(name, None, detail)]
        value = pareto_k(run.problem.log_density(theta) - run.state.module.log_density(theta))
        most = limits.pareto_k(len(theta))
        detail = f"k {value:.2f} of {len(theta)} draws, below {most:.2f} asked"
        return [Check(name, value < most, detail)]


def find_start(
    model: LogJoint,
    problem: SampleableProblem,
    batch_kind: BatchKind,
    rng: Rng,
    start: str,
    gradient: bool = True,
) -> Tensor:
    """Point [P] at which q begins: 0 for the start ``zero``, otherwise as in ``init_chains``.

    Raises:
        NumericalError: as in ``init_chains``.
    """
    begin = torch.zeros_like(model.sample_prior(1, rng.init)) if start == "zero" else None
    return init_chains(model, problem, batch_kind, 1, rng, begin, gradient).start[0]
