"""Assembly of a run's problem from its dataset, attacker and debug mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from components import registry
from components.contracts.attackers import Attackable, Contamination, Evasion, Injection
from components.contracts.costs.meters import metered, metered_density
from components.contracts.problems import Batch, KnowsTruth, Rows
from components.contracts.roles import Inference, Problem, Setting
from components.errors import ConfigMismatchError
from components.evaluation.checks.plugin_models import examine_model
from components.evaluation.decision import add_decision
from components.problems.density import Density
from components.problems.epochs import RowProblem
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.dimensions import check_sizes
from components.series.sequence import Sequence
from runner.compose.job import Job
from runner.errors import ConfigError, RunFailure
from runner.execution.rng import Streams

PROFILED_STEPS = 20  # number of steps under debug=profile
DTYPES = {"float64": torch.float64, "float32": torch.float32}


def load_problem(job: Job, rng: Streams, at_once: int = 1) -> Problem:
    """Problem of the dataset, with ``at_once`` replicates.

    A contamination attack is applied to it; for evasion the problem includes the attacker.

    Raises:
        RunFailure: the loaded dataset differs from the announced one.
        ConfigError, ConfigMismatchError: the problem does not support the attacker's sizes or the
            mode, or its replicates cannot be stacked.
    """
    if not job.side_by_side:
        return _load(job, rng, at_once)
    splits = [_load(job, rng.of(r), 1) for r in range(at_once)]
    return SupervisedReplicates([split for split in splits if isinstance(split, Supervised)])


def hide_truth(problem: Problem, inference: Inference) -> Problem:
    """The problem without its ground truth, as passed to a method.

    The truth is kept for methods that declare ``reads_truth`` because they measure themselves."""
    if inference.reads_truth or not isinstance(problem, KnowsTruth):
        return problem
    shown: Problem = problem.without_truth()
    return shown


def build_model(job: Job, problem: Problem, rng: Streams) -> Any:
    """Model of a problem, or one for each replicate if replicates are side by side.

    Raises:
        ConfigMismatchError: the number of states or observations differs from the data's; a
            plug-in's prediction for a row depends on other rows, or it returns probabilities
            instead of logits.
    """
    if isinstance(problem, SupervisedReplicates):
        return [_build_model(job, split, rng.of(r)) for r, split in enumerate(problem.splits)]
    return _build_model(job, problem, rng)


def _build_model(job: Job, problem: Problem, rng: Streams) -> Any:
    model = job.model.build(problem, rng)
    check_sizes(problem, model)
    if isinstance(problem, Supervised) and registry.file("model", job.model.name) is None:
        examine_model(model, problem, f"model={job.model.name}")
    return metered(model)


def _load(job: Job, rng: Streams, at_once: int) -> Problem:
    settings = job.settings
    setting = Setting(
        data_dir=Path(settings.data_dir),
        device=torch.device(settings.device),
        dtype=DTYPES[settings.dtype],
        replicates=at_once,
        offline=settings.offline,
    )
    problem: Problem = job.dataset.load(rng, setting)
    if settings.validation is not None:
        if not isinstance(problem, RowProblem):
            raise ConfigMismatchError(
                f"validation={settings.validation}: dataset={job.dataset.name} does not support holding out training rows"
            )
        problem = problem.held_out(settings.validation, rng)
    if job.decision is not None and isinstance(problem, Supervised):
        problem = add_decision(problem, job.decision)
    if problem.name != job.data:
        raise RunFailure(
            f"the data changed during the run: expected {job.data}, loaded {problem.name}; repeat the command"
        )
    if job.attacker is not None:
        if isinstance(job.attacker, Contamination):
            if not isinstance(problem, Sequence):
                raise ConfigMismatchError(
                    f"attacker={job.attacker.name}: dataset={job.dataset.name} has no observations to corrupt"
                )
            problem = problem.attack(job.attacker, rng)
        if job.threat is not None:
            job.threat.check(problem)
        if not isinstance(problem, Attackable):
            raise ConfigMismatchError(
                f"attacker={job.attacker.name}: dataset={job.dataset.name} does not support attackers"
            )
        if isinstance(job.attacker, Evasion):
            job.attacker.check_target(problem, "attacker")
        problem.attacker = job.attacker
    if isinstance(problem, Density):
        problem.log_density = metered_density(problem.log_density)
    return limit_to_one_batch(problem, rng) if settings.debug == "overfit" else problem


def limit_to_one_batch(problem: Problem, rng: Streams) -> Problem:
    """Restrict a problem to its first batch, for both training and testing."""
    assert isinstance(problem, Supervised | Unlabelled)  # ``compose.check`` refuses others
    batches: Iterator[tuple[int, Batch | Rows]] = problem.batches("minibatch", rng, 0, 1)
    first_batch = next(batches)[1].part(slice(None), 1.0)
    changes: dict[str, Any] = {"train": first_batch, "test": first_batch, "batch_size": None}
    if isinstance(problem, Unlabelled):
        changes["test_classes"] = None  # unknown for the rows of a batch
    return dataclasses.replace(problem, **changes)


def total_steps(job: Job, problem: Problem) -> int:
    """Number of steps of a replicate: as requested, or the problem's length, or the most that the
    method can use.

    Raises:
        ConfigError: the number is unknown, exceeds the problem's steps, or is smaller than an
            attacker of whole series requires.
    """
    steps = job.settings.steps
    length = problem.length(job.inference.requires.batch_kind)
    enough = job.inference.max_useful_steps
    if steps is None and length is None and enough is None:
        suffix = " as a whole series" if job.inference.requires.batch_kind == "series" else ""
        raise ConfigError(
            f"steps: missing, because dataset={job.dataset.name} has no length{suffix}; set steps=…"
        )
    if steps is not None and length is not None and steps > length:
        raise ConfigError(f"steps={steps}: dataset={job.dataset.name} has only {length}")
    total = steps or length or enough or 0
    if isinstance(job.attacker, Injection):
        if total < (length or 0):
            raise ConfigError(
                f"steps={steps}: attacker={job.attacker.name} attacks the whole series of {length} steps; "
                f"set steps=null or steps={length}"
            )
        return total
    return min(total, PROFILED_STEPS) if job.settings.debug == "profile" else total
