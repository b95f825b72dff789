"""The Hydra application: one composed config in, one run out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from runner import CONF
from runner.compose.overrides import explicit_keys, reach_into_parts
from runner.mistakes import FAILURES, ConfigError, RunFailure

reach_into_parts()  # on import: a sweep's jobs, in whatever process, import this module before they compose


def objective(result: dict[str, list[float]], name: str | None) -> float:
    """The number a sweep optimises: the mean over replicates of ``objective`` (default: the first metric).

    Raises:
        ConfigError: the run has no such metric.
    """
    from runner.mistakes import nearest

    name = name or next(iter(result))
    if name not in result:
        raise ConfigError(f"objective={name}: no such metric{nearest(name, result)}")
    return sum(result[name]) / len(result[name])


def attempt(cfg: DictConfig, experiment: str | None, explicit: set[str] | None) -> tuple[int, float | None, str]:
    """(exit code, objective, message) of one job; ``explicit`` as in ``config.prepare``."""
    from runner.run.memory import keep_freed_memory

    keep_freed_memory()
    # torch is imported here, after composition.
    from components.trouble import DataUnavailable, NumericalTrouble
    from runner import console
    from runner.compose import config
    from runner.run.execute import run
    from runner.run.signals import Interrupted, Pruned

    try:
        job = config.prepare(cfg, experiment, explicit)
        console.composition(job)
        going, result = run(job, hook(job))
        if going.was_done:
            console.out.print(
                f"done already, {going.record.facts['ended']}: this is its record; fresh=true runs it again"
            )
            if going.mirror and going.mirror.pushed.get("state") != "done":
                going.mirror.push()  # a run that just ended has pushed already
        console.result(job, result, *printed(job))
        console.checks(going.record.folder / "tables" / "attack_checks.csv", job.settings.replicates)
        console.whereabouts(going.record.folder, going.mirror, going.record.facts.get("artefacts", ()))
        return 0, objective(result, job.settings.objective), ""
    except ConfigError as error:
        return 2, None, str(error)
    except DataUnavailable as error:
        return 2, None, str(error)
    except NumericalTrouble as error:
        saved = any((job.folder / "checkpoints").glob("*"))  # only a job at work meets it
        return 1, None, f"diverged: {error}" + ("; the last good checkpoint is kept" if saved else "")
    except Pruned as error:
        return 0, None, f"pruned: {error}"
    except Interrupted as error:
        return error.code, None, str(error)
    except RunFailure as error:
        return 1, None, str(error)
    except KeyboardInterrupt:
        return 130, None, "interrupted inside a step; the same command goes on from the last checkpoint"


def printed(job: Any) -> tuple[dict[str, str], str]:
    """What the papers print for this run, by metric, and whether ours can be compared with it.

    Raises:
        ConfigError: ``paper_tables`` names a table that is not in conf/published.
    """
    from runner.published import load_published

    found: dict[str, str] = {}
    reason = ""
    for name in job.settings.paper_tables:
        table = load_published(name)
        numbers = table.beside(job.config)
        found |= numbers
        if numbers and job.data != table.data:
            reason = f"not comparable: ours is on {job.data}, theirs on {table.data}"
        elif numbers and table.not_comparable:
            reason = f"not comparable: {table.not_comparable}"
    return found, reason


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def main(cfg: DictConfig) -> float | None:
    """Runs the job; in a sweep a failure is noted and the next job goes on."""
    from runner import console

    hydra_config = HydraConfig.get()
    # Unresolved: an override may hold an interpolation, and one that fails must fail with our message.
    overrides: Any = OmegaConf.to_container(hydra_config.overrides.task, resolve=False)
    sweeping = hydra_config.mode == RunMode.MULTIRUN
    OmegaConf.set_struct(cfg, False)
    if sweeping:
        console.out.rule(f"job {hydra_config.job.num}: {hydra_config.job.override_dirname}", align="left")
    experiment = hydra_config.runtime.choices.get("experiment")
    code, value, message = attempt(cfg, experiment, explicit_keys(overrides))
    if message:
        console.complain(message)
    sys.stdout.flush()
    if not sweeping or code > 128:
        raise SystemExit(code)
    if code and os.environ.get(FAILURES):
        with Path(os.environ[FAILURES]).open("a") as file:
            file.write(json.dumps({"overrides": overrides, "message": message}) + "\n")
    return value


def hook(job: Any) -> Any:
    """What a sweeper wants to be told after each evaluation, if one is at work."""
    if "RUNNER_TRIAL" not in os.environ:
        return None
    from runner.sweep.trial import report_to_trial

    settings = job.settings
    loops = 1 if job.vectorised else settings.replicates
    return report_to_trial(settings.objective, loops, settings.steps, f"{job.folder.parent.name}/{job.folder.name}")
