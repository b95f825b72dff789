"""Trained state of a run: from its record, with the problem loaded again, or from a stored state
and a given problem."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Problem
from components.errors import ConfigMismatchError, DataUnavailableError, NumericalError
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from runner.catalogue.plugins import refuse_unknown_modules
from runner.commands.resume import read_run_config
from runner.compose.config import Job, prepare
from runner.compose.hydra import patches as hydra_patches
from runner.errors import ConfigError, RunFailure
from runner.execution import checkpoint
from runner.execution.assembly import build_model, load_problem
from runner.execution.rng import Streams
from runner.terminal import printer


def rebuild_job(folder: Path, data_dir: str | None) -> Job:
    """Job of a record's run, ready to be loaded again.

    Users' code is imported only if the caller has already imported it.

    Raises:
        ConfigError: its config is damaged, or names modules that are not imported, or its
            data are missing.
    """
    cfg, experiment, modules = read_run_config(folder / "config.yaml")
    unknown = [module for module in modules if module not in sys.modules]
    refuse_unknown_modules(unknown, f"the record {folder}", f"import {', '.join(unknown)} first,")
    cfg.output_dir = str(folder.parent.parent)
    if data_dir is not None:
        cfg.data_dir = data_dir
    with hydra_patches.within():
        return prepare(cfg, experiment, None)


@dataclass(frozen=True)
class RestoredRun:
    """A problem and the posterior of it that a run came to."""

    problem: Problem
    model: object
    posterior: object
    rng: Streams
    replicate: int  # index of the replicate, from 0; all of them where replicates are a dimension
    step: int
    metadata: dict[str, Any]  # of its checkpoint: skeleton, signature, …
    tensors: dict[str, Tensor]  # of its checkpoint

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


def restore_record(folder: Path, facts: dict[str, Any], data_dir: str | None = None) -> RestoredRun:
    """Posterior and problem of a record, without output.

    Args:
        folder: of the record.
        facts: of its run.json.
        data_dir: folder of its data files; None: as recorded.

    Raises:
        ConfigError: its data do not exist, or its config names modules that are not imported.
        RunFailure: there is no checkpoint that this version can read.
    """
    try:
        with printer.suppress_output():
            return restore_run(rebuild_job(folder, data_dir), folder, facts)
    except DataUnavailableError as error:
        raise ConfigError(str(error)) from None
    except NumericalError as error:
        raise RunFailure(f"{folder}: {error}") from error


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

    def load(rng: Streams) -> Problem:
        return load_problem(job, rng, job.settings.replicates if job.is_vectorised else 1)

    try:
        return restore_state(job, load, metadata, tensors)
    except ConfigMismatchError as error:
        raise ConfigError(str(error)) from None
    except StateMismatchError as error:
        raise RunFailure(
            f"{folder}: its checkpoint does not fit the state that the code of today has ({error}); {hint}"
        ) from error


class StateMismatchError(Exception):
    """A stored state that the code cannot read."""


def restore_state(
    job: Job,
    load: Callable[[Streams], Problem],
    metadata: dict[str, Any],
    tensors: dict[str, Tensor],
) -> RestoredRun:
    """Posterior of a stored state.

    Args:
        job: the run.
        load: gives the problem.
        metadata: of the checkpoint: replicate, step and skeleton.
        tensors: of the checkpoint.

    Raises:
        ConfigMismatchError: the model does not fit the problem.
        StateMismatchError: the state has another layout.
    """
    rng = Streams(job.settings.seed, metadata["replicate"], torch.device(job.settings.device))
    problem = load(rng)
    model = build_model(job, problem, rng)
    held = sum(tensor.numel() for tensor in tensors.values())
    if isinstance(model, LogJoint) and model.dim > held:
        raise StateMismatchError(f"{model.dim:,} parameters for {held:,} stored numbers")
    fresh = job.method.init(model, problem, rng)
    try:
        state, streams = checkpoint.restore(metadata, tensors, fresh, rng.device)
        rng.restore(streams, metadata["step"])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise StateMismatchError(f"{error!r:.200}") from error
    posterior = job.method.posterior(state)
    place = metadata["replicate"], metadata["step"]
    return RestoredRun(problem, model, posterior, rng, *place, metadata, tensors)
