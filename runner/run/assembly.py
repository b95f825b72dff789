"""The problem of a run, put together from its dataset, its attacker and its mode."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from components.contracts.roles import Contamination, Evasion, Setting
from components.evaluation.threat import check_sizes
from runner.compose.config import Job
from runner.mistakes import ConfigError, RunFailure
from runner.run.rng import Streams

PROFILED = 20  # steps under debug=profile


def load_problem(job: Job, rng: Streams) -> Any:
    """The dataset's problem, under attack where that is contamination, with its attacker where that is evasion.

    Raises:
        RunFailure: another dataset was loaded than was announced.
        ConfigError, Misfit: the attacker's sizes or the mode do not fit the problem.
    """
    settings = job.settings
    setting = Setting(
        data_dir=Path(settings.data_dir),
        device=torch.device(settings.device),
        dtype=getattr(torch, settings.dtype),
        replicates=settings.replicates if job.dataset.vectorised else 1,
        offline=settings.offline,
    )
    problem: Any = job.dataset.load(rng, setting)
    if settings.validation is not None:
        problem = problem.held_out(settings.validation, rng)
    if problem.name != job.data:
        raise RunFailure(
            f"the data changed under the run: {job.data} was announced, {problem.name} was loaded; run again"
        )
    if job.attacker is not None:
        if isinstance(job.attacker, Contamination):
            problem = problem.attacked(job.attacker, rng)
        if isinstance(job.attacker, Evasion):
            check_sizes(job.attacker, problem)
        problem.attacker = job.attacker
    return one_batch(job, problem, rng) if settings.debug == "overfit" else problem


def one_batch(job: Job, problem: Any, rng: Streams) -> Any:
    """The problem whose data, to learn from and to be tested on, are its first batch alone."""
    if problem.kind != "supervised":
        raise ConfigError(f"debug=overfit: needs a supervised problem, dataset={job.dataset.name} is a {problem.kind}")
    _, batch = next(iter(problem.batches("minibatch", rng, 0, 1)))
    batch = dataclasses.replace(batch, scale=1.0)
    return dataclasses.replace(problem, train=batch, test=batch, batch_size=None)


def total_steps(job: Job, problem: Any) -> int:
    """How many steps a replicate has: those asked for, or as many as the problem is long.

    Raises:
        ConfigError: neither is known, or more are asked for than there are.
    """
    steps, length = job.settings.steps, problem.length(job.inference.sees)
    if steps is None and length is None:
        seen = " when seen whole" if job.inference.sees == "series" else ""
        raise ConfigError(f"steps: missing; dataset={job.dataset.name} has no length of its own{seen}, give steps=…")
    if steps is not None and length is not None and steps > length:
        raise ConfigError(f"steps={steps}: dataset={job.dataset.name} has only {length}")
    total = steps or length
    return min(total, PROFILED) if job.settings.debug == "profile" else total
