"""Trained state of a run, from its record.

The problem is loaded again and the state of its newest checkpoint is restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from components.contracts.roles import Problem
from components.errors import ConfigMismatchError
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from runner.compose.config import Job
from runner.errors import ConfigError, RunFailure
from runner.execution import checkpoint
from runner.execution.assembly import build_model, load_problem
from runner.execution.rng import Streams


@dataclass(frozen=True)
class RestoredRun:
    """A problem and the posterior of it that a run came to."""

    problem: Problem
    model: object
    posterior: object
    rng: Streams
    replicate: int  # index of the replicate, from 0; all of them where replicates are a dimension
    step: int

    def one(self, replicate: int | None, variant: str | None) -> tuple[Problem, object, Streams]:
        """The problem and posterior of a replicate and a variant, out of those that were learnt
        side by side.

        Raises:
            ConfigError: several are there and none is named, or one is named that is not there."""
        problem = self.problem
        posterior = self.posterior
        rng = self.rng
        if isinstance(problem, SupervisedReplicates) and isinstance(posterior, tuple):
            if replicate is None or not 0 <= replicate < problem.replicates:
                among = f"from 0 to {problem.replicates - 1}"
                raise ConfigError(
                    f"replicate={replicate}: several were learnt side by side; say which, {among}"
                )
            problem = problem.splits[replicate]
            posterior = posterior[replicate]
            rng = rng.of(replicate)
        elif replicate not in (None, self.replicate):
            raise ConfigError(
                f"replicate={replicate}: that of the last replicate alone is kept, {self.replicate}"
            )
        if isinstance(posterior, Variants):
            if variant not in posterior.of:
                among = ", ".join(posterior.of)
                raise ConfigError(
                    f"variant={variant}: several were learnt side by side; say which of {among}"
                )
            posterior = posterior.of[variant]
        elif variant is not None:
            raise ConfigError(f"variant={variant}: the run has one posterior; leave it out")
        return problem, posterior, rng


def restore_run(job: Job, folder: Path, facts: dict[str, Any]) -> RestoredRun:
    """Restore the newest checkpoint in a record's folder; its run.json has these facts.

    Only checkpoints of the replicate that was computed last are kept.

    Raises:
        RunFailure: there is no checkpoint, or it is from other code or data.
    """
    hint = "run it with fresh=true to have one"
    if job.data != facts["data"]:
        raise RunFailure(
            f"{folder}: was on the data {facts['data']}, and {job.data} is what is found now; give data_dir=… "
            "with the files that it had"
        )
    metadata, tensors, complaints = checkpoint.load_newest(
        folder / "checkpoints", facts["signature"]
    ) or ({}, {}, [])
    if not metadata:
        reason = f"none is whole ({complaints[0]})" if complaints else "there is none"
        if (source := facts.get("taken_over")) and not complaints:
            reason += f", its replicates were taken over from run {source['run'][:12]}"
        raise RunFailure(f"{folder}: no posterior without a checkpoint, and {reason}; {hint}")
    rng = Streams(job.settings.seed, metadata["replicate"], torch.device(job.settings.device))
    vectorised = facts.get("vectorised", job.is_vectorised)
    try:
        problem = load_problem(job, rng, job.settings.replicates if vectorised else 1)
        model = build_model(job, problem, rng)
        fresh = job.method.init(model, problem, rng)
    except ConfigMismatchError as error:
        raise ConfigError(str(error)) from None
    try:
        state, streams = checkpoint.restore(metadata, tensors, fresh, rng.device)
        rng.restore(streams, metadata["step"])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise RunFailure(
            f"{folder}: its checkpoint does not fit the state that the code of today has ({error!r:.200}); {hint}"
        ) from error
    return RestoredRun(
        problem, model, job.method.posterior(state), rng, metadata["replicate"], metadata["step"]
    )
