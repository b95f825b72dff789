"""Chains as a tensor dimension: initial states, stored states, and the resulting draws."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import (
    ForecastsSeries,
    LogJoint,
    ThetaPredictive,
    TrainingStart,
    WarmStart,
)
from components.contracts.capabilities.densities import DataBatch
from components.contracts.problems import BatchKind, Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Problem, SeriesProblem
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace, is_kept_step
from components.errors import NumericalError
from components.inference.log_joint import log_joint, value_and_gradient
from components.inference.superchains import count_superchains, share_starts
from components.posteriors.draws import Draws
from components.problems.density import Density
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

SampleableProblem = Supervised | Density | SeriesProblem | Unlabelled  # problems with a log joint
# views of data: rows with or without labels, a whole series, or None for a density
ModelBatch = DataBatch | None


NAMED = 5  # number of chains listed in a message
START_TRIES = 100  # draws of a chain's start before a start with zero density is an error
# number of containers for independent draws of a fit, required by diagnostics
INDEPENDENT_CHAINS = 2
# Requirements on a log joint for scoring labels or forecasting a series.
NEEDS_TO_PREDICT = {
    "supervised": frozenset({ThetaPredictive}),
    "sequence": frozenset({ForecastsSeries}),
}


@dataclass(kw_only=True)
class Chains:
    """State of C chains, or of R·C if R replicates are computed together; samplers add fields."""

    model: LogJoint = not_checkpointed()
    replicates: int = 1  # R, with C chains each; the first C rows belong to the first replicate
    t: int = 0  # finished steps
    start: Tensor  # start positions [C, P]
    theta: Tensor  # current positions [C, P]
    kept: Trace = field(default_factory=Trace)  # rows [C, P], on the CPU
    # name -> rows [C], one for each stored state, on the CPU
    stats: defaultdict[str, Trace] = field(default_factory=lambda: defaultdict(Trace))


C = TypeVar("C", bound=Chains)


class Sampler(Inference[LogJoint, SampleableProblem, ModelBatch, C], Generic[C]):
    """Base of samplers of a log joint; the posterior holds the stored states of their chains."""

    requires = Requirements(
        kinds={"density", "supervised"},
        capabilities={LogJoint},
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    chains: PositiveInt

    def start_chains(
        self, model: LogJoint, problem: SampleableProblem, rng: Rng, gradient: bool = True
    ) -> Chains:
        """The state of the chains before the first step, from ``init_chains``."""
        batch_kind = self.requires.batch_kind
        return init_chains(
            model,
            problem,
            batch_kind,
            self.chains,
            rng,
            gradient=gradient,
            superchains=count_superchains(self),
        )

    def posterior(self, state: C) -> Draws:
        return to_draws(state)  # [C, N, P]


def first_batch(problem: Problem | None, batch_kind: BatchKind, rng: Rng) -> ModelBatch:
    """Batch of the first step; None if there are no data."""
    return None if problem is None else next(iter(problem.batches(batch_kind, rng, 0, 1)))[1]


def training_data(problem: SampleableProblem) -> ModelBatch:
    """All training data; None if there are no data."""
    if isinstance(problem, SeriesProblem):
        return problem.series
    if isinstance(problem, Unlabelled):
        assert isinstance(problem.train, Rows)  # texts have no log joint
        return problem.train
    return problem.train if isinstance(problem, Supervised) else None


def init_chains(
    model: LogJoint,
    problem: Problem | None,
    batch_kind: BatchKind,
    chains: int,
    rng: Rng,
    start: Tensor | None = None,
    gradient: bool = True,
    superchains: int | None = None,
) -> Chains:
    """Initial state of C chains per replicate, at ``start`` [R·C, P], or at draws from the model's
    ``sample_start`` if it has one, otherwise from its prior.

    A start with zero density (log density −∞) is redrawn at most ``START_TRIES`` times.  With K
    ``superchains``, C/K consecutive chains share a start.  With ``gradient`` False no gradient is
    computed, and the model need not be differentiable.  Raises NumericalError if the log joint or
    its gradient is not finite at a start."""
    begin = share_starts(
        model.sample_start if isinstance(model, WarmStart) else model.sample_prior,
        1 if superchains is None else chains // superchains,
    )
    replicates = 1 if problem is None else problem.replicates
    theta = begin(replicates * chains, rng.init) if start is None else start  # [R·C, P]
    batch = first_batch(problem, batch_kind, rng)
    value, wrong = _examine_starts(model, theta, batch, gradient)
    tries = 1
    while start is None and tries < START_TRIES and (value == -torch.inf).any():
        is_rejected = (value == -torch.inf).unsqueeze(1)
        theta = torch.where(is_rejected, begin(replicates * chains, rng.init), theta)
        value, wrong = _examine_starts(model, theta, batch, gradient)
        tries += 1
    if wrong.any():
        chain_ids = wrong.nonzero().flatten().tolist()
        attempts = f", drawn {tries} times" if tries > 1 else ""
        raise NumericalError(
            f"log density{' or its gradient' if gradient else ''} is not finite where {name_chains(chain_ids)} start{attempts} "
            f"(first: {float(value[chain_ids[0]]):g})",
            "change the starting points in the dataset or the model's prior, or change seed",
        )
    return Chains(model=model, replicates=replicates, start=theta, theta=theta)


def name_chains(ids: list[int]) -> str:
    """Numbers of the chains, of many only the first."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"chains {ids[:NAMED]}{more}"


def _examine_starts(
    model: LogJoint, theta: Tensor, batch: ModelBatch, gradient: bool
) -> tuple[Tensor, Tensor]:
    """The log joint [C] at θ [C, P], and True where it or its gradient is not finite [C]."""
    if not gradient:
        value = log_joint(model, theta, batch).detach()
        return value, ~torch.isfinite(value)
    value, slope = value_and_gradient(model, theta, batch)
    return value, ~(torch.isfinite(value) & torch.isfinite(slope).all(1))


def init_for_training(
    model: LogJoint, problem: Problem, batch_kind: BatchKind, chains: int, rng: Rng
) -> Chains:
    """State of C chains at the start of training.

    Chains start at ``initial`` if the model has it (networks, for which training does not
    start where samplers start); otherwise as in ``init_chains``.
    """
    begin = None
    if isinstance(model, TrainingStart):
        batch = first_batch(problem, batch_kind, rng)
        begin = model.initial(chains, rng.init)
        begin = begin if batch is None else begin.to(batch.x)
    return init_chains(model, problem, batch_kind, chains, rng, begin)


def advance(
    state: C,
    theta: Tensor,
    burn_in: int,
    thinning: int,
    stats: Mapping[str, Tensor] | None = None,
    mend: str = "lower inference.step_size",
) -> C:
    """The state after a step to θ [C, P]; after ``burn_in`` steps every ``thinning``-th state is
    stored with its stats [C].

    Raises NumericalError if a chain is not finite, and ValueError if θ has another shape."""
    if theta.shape != state.theta.shape:
        raise ValueError(f"theta is {list(theta.shape)}, but chains are {list(state.theta.shape)}")
    t = state.t + 1
    keeps = is_kept_step(t, burn_in, thinning)
    draws, kept_stats = move_to_cpu(theta, stats or {}) if keeps else (theta, {})
    chain_ids: list[int] = []
    # one pass; a sum may overflow although all chains are finite
    if not math.isfinite(float(draws.sum())):
        chain_ids = (~torch.isfinite(draws).all(1)).nonzero().flatten().tolist()
    if chain_ids:
        raise NumericalError(f"{name_chains(chain_ids)} became non-finite", mend)
    if keeps:
        state.kept.append(draws)  # draws would fill the memory of an accelerator
        for name, value in kept_stats.items():
            state.stats[name].append(value)
    return replace(state, t=t, theta=theta)


def move_to_cpu(theta: Tensor, stats: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """θ [C, P] and its stats [C] on the CPU, from an accelerator in a single transfer, because each
    transfer waits for all pending work of the accelerator."""
    if theta.device.type == "cpu":
        return theta, {name: value.detach().cpu() for name, value in stats.items()}
    columns = [value.detach().unsqueeze(1) for value in stats.values()]
    rows = torch.cat([theta.detach(), *columns], 1).cpu()  # [C, P + S], of the widest dtype
    P = theta.shape[1]
    new_stats = {
        name: rows[:, P + i].to(value.dtype, copy=True)
        for i, (name, value) in enumerate(stats.items())
    }
    return rows[:, :P].to(theta.dtype, copy=True), new_stats


def stack_kept(kept: Trace, like: Tensor, dim: int = 1) -> Tensor:
    """Stored rows [C, N, …], N at ``dim``, on the device of a state [C, …]; N = 0 if there are
    none."""
    if len(kept):
        return kept.stack_rows(dim).to(like.device)
    return like.unsqueeze(dim).narrow(dim, 0, 0)


def to_draws(state: Chains) -> Draws:
    """The draws stored by the chains so far."""
    theta = state.theta
    stats = {name: values.stack_rows(1).to(theta.device) for name, values in state.stats.items()}
    return Draws(
        stack_kept(state.kept, theta),  # [C, N, P]
        state.start,
        list(state.model.names),
        state.model,
        stats,
        theta,
        replicates=state.replicates,
    )


def mean_over_chains(x: Tensor, replicates: int) -> Tensor:
    """Mean of x [R·C, …] over the chains of each replicate, [R]; [] for a single replicate."""
    return x.mean() if replicates == 1 else x.reshape(replicates, -1).mean(1)
