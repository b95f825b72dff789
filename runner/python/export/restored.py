"""Trained state of a run, restored from its record and reloaded data, or from a model's file without
data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from components.contracts.attackers import Attackable
from components.contracts.capabilities import LogJoint
from components.contracts.roles import Problem
from components.errors import ConfigMismatchError, DataUnavailableError, NumericalError
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from runner.catalogue.plugins import refuse_unknown_modules
from runner.commands.resume import parse_run_config, read_run_config
from runner.compose.compose import Composed, restore_hydra_on_exit
from runner.compose.job import Job, build
from runner.compose.resolve import resolve
from runner.errors import ConfigError, RunFailure
from runner.execution import checkpoint
from runner.execution.assembly import build_model, load_problem
from runner.execution.rng import Streams
from runner.execution.storage.packing import Tensors
from runner.python.export.described_problem import check_problem, unpack_problem
from runner.python.export.model_file import ModelFile
from runner.record.facts import Facts
from runner.terminal import printer

# errors caused by edited files
DAMAGE = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    RuntimeError,
    MemoryError,
    AssertionError,
    RecursionError,
)


def load_job(stored: Composed, whose: str, data: str | None = None) -> Job:
    """Job of a stored config; ``data`` as in ``build``.

    Plug-ins must have been imported by the caller.

    Raises:
        ConfigError: the config is invalid, names modules that are not imported, or its data are
            missing.
    """
    unknown = [module for module in stored.plugins if module not in sys.modules]
    refuse_unknown_modules(unknown, whose, f"import {', '.join(unknown)} first,")
    with restore_hydra_on_exit():
        return build(resolve(stored), data)


@dataclass(frozen=True)
class RestoredRun:
    """A problem and its posterior, restored from a run."""

    problem: Problem
    posterior: object
    rng: Streams
    metadata: Facts  # metadata of the checkpoint: replicate, step, skeleton, …
    tensors: Tensors  # tensors of the checkpoint

    @property
    def replicate(self) -> int:
        """Index of the replicate, from 0; 0 if replicates are a dimension."""
        return int(self.metadata["replicate"])

    def one(self, replicate: int | None, variant: str | None) -> tuple[Problem, object, Streams]:
        """Select the problem and posterior of a replicate and a variant trained side by side.

        Raises:
            ConfigError: the selection is missing or does not exist."""
        problem = self.problem
        posterior = self.posterior
        rng = self.rng
        if isinstance(problem, SupervisedReplicates) and isinstance(posterior, tuple):
            if replicate is None or not 0 <= replicate < problem.replicates:
                among = f"from 0 to {problem.replicates - 1}"
                raise ConfigError(
                    f"replicate={replicate}: several replicates were trained side by side; choose one {among}"
                )
            problem = problem.splits[replicate]
            posterior = posterior[replicate]
            rng = rng.of(replicate)
        elif replicate not in (None, self.replicate):
            raise ConfigError(
                f"replicate={replicate}: only the last replicate is stored; use {self.replicate}"
            )
        if isinstance(posterior, Variants):
            if variant not in posterior.of:
                among = ", ".join(posterior.of)
                raise ConfigError(
                    f"variant={variant}: several variants were trained side by side; choose one of {among}"
                )
            posterior = posterior.of[variant]
        elif variant is not None:
            raise ConfigError(f"variant={variant}: the run has a single posterior; remove it")
        return problem, posterior, rng


def restore_record(folder: Path, facts: Facts, data_dir: str | None) -> RestoredRun:
    """Posterior and problem of a record, without output.

    Args:
        folder: folder of the record.
        facts: content of its run.json.
        data_dir: folder of the data files, by default the recorded one.

    Raises:
        ConfigError: the data do not exist, or the config names modules that are not imported.
        RunFailure: no checkpoint is readable by this version.
    """
    hint = "run it with fresh=true to write one"
    stored = read_run_config(folder / "config.yaml")
    stored.cfg.output_dir = str(folder.parent.parent)
    if data_dir is not None:
        stored.cfg.data_dir = data_dir
    try:
        with printer.suppress_output():
            job = load_job(stored, f"the record {folder}")
            metadata, tensors = _load_checkpoint(job, folder, facts, hint)
            return restore_state(
                job, lambda rng: load_problem(job, rng, job.n_together), metadata, tensors
            )
    except (ConfigMismatchError, DataUnavailableError) as error:
        raise ConfigError(str(error)) from None
    except StateMismatchError as error:
        raise RunFailure(
            f"{folder}: the checkpoint is incompatible with this version of the code ({error}); {hint}"
        ) from error
    except NumericalError as error:
        raise RunFailure(f"{folder}: {error}") from error


def _load_checkpoint(job: Job, folder: Path, facts: Facts, hint: str) -> tuple[Facts, Tensors]:
    """Load the newest checkpoint in a record's folder; ``facts`` are the content of run.json.

    Only checkpoints of the last replicate are kept.

    Raises:
        RunFailure: the checkpoint is missing or belongs to other data.
    """
    if job.data != facts["data"]:
        raise RunFailure(
            f"{folder}: the run used the data {facts['data']}, but {job.data} was found; set data_dir=… "
            "to the folder of the original files"
        )
    newest = checkpoint.load_newest(folder / "checkpoints", facts["signature"])
    metadata, tensors, complaints = newest
    if not metadata:
        reason = f"all are damaged ({complaints[0]})" if complaints else "none exists"
        if (source := facts.get("taken_over")) and not complaints:
            reason += f", because the replicates were copied from run {source['run'][:12]}"
        raise RunFailure(f"{folder}: the posterior requires a checkpoint, but {reason}; {hint}")
    return metadata, tensors


class StateMismatchError(Exception):
    """A stored state is incompatible with this version of the code."""


def restore_state(
    job: Job,
    load: Callable[[Streams], Problem],
    metadata: Facts,
    tensors: Tensors,
) -> RestoredRun:
    """Posterior of a stored state.

    Args:
        job: the run.
        load: function that loads the problem.
        metadata: replicate, step and skeleton of the checkpoint.
        tensors: tensors of the checkpoint.

    Raises:
        ConfigMismatchError: the model is incompatible with the problem.
        StateMismatchError: the state has a different layout.
    """
    rng = Streams(job.settings.seed, metadata["replicate"], job.settings.device)
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
    return RestoredRun(problem, job.method.posterior(state), rng, metadata, tensors)


def rebuild(stored: ModelFile, file: Path, device: str) -> RestoredRun:
    """Rebuild the posterior of a model's file.

    Raises:
        ConfigError: see ``load_model``.
    """
    hint = "write it again with runner export of this version"
    try:
        config = parse_run_config(stored.config, file / "config.yaml")
        config.cfg.device = device
        job = load_job(config, str(file), str(stored.facts["data"]))
        on = torch.device(job.settings.device)
        problem = check_problem(unpack_problem(stored.facts["problem"], stored.tensors, on))
        facts = stored.facts
        metadata = {key: facts[key] for key in ("replicate", "step", "skeleton")}

        def give(_: Streams) -> Problem:
            if job.attacker is not None and isinstance(problem, Attackable):
                problem.attacker = job.attacker
            return problem

        return restore_state(job, give, metadata, stored.tensors)
    except ConfigMismatchError as error:
        raise ConfigError(f"{file}: {error}") from None
    except StateMismatchError as error:
        raise ConfigError(
            f"{file}: the state is incompatible with this version ({error}), written by runner "
            f"{stored.facts.get('runner')!r:.20}; {hint}"
        ) from None
    except DAMAGE as error:
        raise ConfigError(f"{file}: damaged ({error!r:.200}); {hint}") from None
