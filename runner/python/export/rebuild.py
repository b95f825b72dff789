"""The posterior of a model's file, rebuilt without its data; nothing in the file is run."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from components.contracts.attackers import Attackable
from components.contracts.roles import Problem
from components.errors import ConfigMismatchError
from runner.catalogue.plugins import refuse_unknown_modules
from runner.commands.resume import parse_run_config
from runner.compose.config import Job, build
from runner.compose.hydra import patches as hydra_patches
from runner.compose.resolve import resolve
from runner.errors import ConfigError
from runner.execution.rng import Streams
from runner.python.export.described_problem import check_problem, unpack_problem
from runner.python.export.model_file import ModelFile
from runner.python.export.restored import RestoredRun, StateMismatchError, restore_state

# errors of a file that somebody has edited
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


def rebuild(stored: ModelFile, file: Path, device: str = "cpu") -> RestoredRun:
    """Posterior of a model's file.

    Raises:
        ConfigError: as ``load_model``.
    """
    hint = "write it again with runner export of this version"
    try:
        job = _job(stored, file, device)
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
            f"{file}: its state does not fit this version ({error}), it was written by runner "
            f"{stored.facts.get('runner')!r:.20}; {hint}"
        ) from None
    except DAMAGE as error:
        raise ConfigError(f"{file}: damaged ({error!r:.200}); {hint}") from None


def _job(stored: ModelFile, file: Path, device: str) -> Job:
    """Raises ConfigError: the config is not valid, or names plug-ins that are not imported."""
    cfg, experiment, modules = parse_run_config(stored.config, file / "config.yaml")
    unknown = [module for module in modules if module not in sys.modules]
    refuse_unknown_modules(unknown, str(file), f"import {', '.join(unknown)} first,")
    cfg.device = device
    with hydra_patches.within():
        return build(resolve(cfg, experiment, None), str(stored.facts["data"]))
