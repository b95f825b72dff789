"""The Hydra application: one composed config in, one run out."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from runner.catalogue.declarations import data_state
from runner.catalogue.words import is_sweep, sweep_required_message
from runner.commands.unexpected import describe_unexpected
from runner.compose.compose import Composed, compose_in_full, list_overrides, without_hydra
from runner.compose.resolve import ResolvedConfig, resolve
from runner.errors import ConfigError, RunFailure
from runner.execution.screen import show_run as console
from runner.record import usage
from runner.record.facts import Facts, list_folder, read
from runner.record.files import warn_damage
from runner.record.folders import name_run
from runner.sweep.objectives import values
from runner.sweep.outcomes import JobOutcome, note, title
from runner.sweep.trial import ENV_VARIABLE, report_to_trial
from runner.terminal import printer, streams
from runner.terminal.numbered import number_lines
from runner.tracking.handover import Handover, ensure_pushed

# On import: a sweep's jobs, in any process, import this module before they compose.
streams.install()


@dataclass(frozen=True)
class Attempt:
    """Result of an attempt to run a job."""

    code: int  # the exit code of its process
    value: float | list[float] | None = None  # its objective, or several
    message: str = ""  # the error
    folder: Path | None = None  # the folder of its record, if it has one

    def report(self) -> int:
        """Print the error, or the reason for pruning, and return the exit code."""
        if self.message and self.code == 0:  # stopped early by a sweep, not a failure
            printer.out.print(self.message)
        elif self.message:
            printer.complain(self.message)
        sys.stdout.flush()
        return self.code


def attempt(composed: Composed, device: str | None = None) -> Attempt:
    """Run one job.

    It resumes on ``device``, if given, in place of the recorded one.
    """
    try:
        resolved = resolve(composed)
        # the config, and so the identity of the run, stay unchanged
        if device is not None:
            settings = resolved.settings.model_copy(update={"device": device})
            resolved = replace(resolved, settings=settings)
        finished_run = find_finished_run(resolved) if ENV_VARIABLE not in os.environ else None
        if finished_run is not None:
            console.show_composition(finished_run[0])
            return show_done(*finished_run)
        return work(resolved)
    except ConfigError as error:
        return Attempt(2, message=str(error))
    except OSError as error:
        code, message = describe_unexpected(error)
        return Attempt(code, message=message)


def find_finished_run(resolved: ResolvedConfig) -> tuple[ResolvedConfig, Facts] | None:
    """Config with the identity of a finished run, and that run's run.json, without importing torch.

    The check uses the config, the records on disk and the current data files.  None if there is no
    such run, or if torch is needed to decide.
    """
    settings = resolved.settings
    if settings.fresh or settings.plugins or settings.device != "cpu":
        return None
    for folder in list_folder(Path(settings.output_dir) / settings.experiment):
        facts = read(folder)
        if facts is None or facts["state"] != "done" or "data" not in facts:
            continue
        if folder.name != replace(resolved, data=facts["data"]).signature:
            continue
        dataset = resolved.config["dataset"]["name"]
        state = data_state(dataset, Path(settings.data_dir), settings.offline)
        recorded = facts.get("data_state")
        if state == "":  # the name decides
            state = dataset if settings.validation is None else f"{dataset}-validation"
            recorded = facts["data"]
        if state is None or state != recorded:
            return None
        warn_damage(folder, facts)
        return resolved.identify(facts["data"]), facts
    return None


def work(resolved: ResolvedConfig) -> Attempt:
    """Run a job, or load its result if its record turns out to be finished.

    Torch is imported here.

    Raises:
        ConfigError: the components are incompatible.
    """
    from runner.execution.memory import keep_freed_memory

    keep_freed_memory()
    first = "torch" not in sys.modules
    from components.errors import DataUnavailableError, NumericalError
    from runner.compose.job import build
    from runner.execution.divergence import explain_divergence
    from runner.execution.execute import run
    from runner.execution.signals import RunInterruptedError, RunPrunedError

    if first or not gc.isenabled():
        gc.freeze()  # imported objects are not garbage
    gc.enable()
    folder: Path | None = None
    try:
        job = build(resolved)
        folder = job.folder
        console.show_composition(job)
        steps = job.settings.steps
        budget = steps and steps * job.loops
        on_evaluation = report_to_trial(job.settings.objective, budget, name_run(folder))
        active_run, _ = run(job, on_evaluation)
        facts = active_run.record.facts
        return (
            show_done(job, facts) if active_run.was_done else show(job, facts, active_run.handover)
        )
    except DataUnavailableError as error:
        return Attempt(2, message=str(error))
    except NumericalError as error:
        return Attempt(1, message=explain_divergence(error, folder), folder=folder)
    except RunPrunedError as error:
        return Attempt(0, message=f"pruned: {error}", folder=folder)
    except RunInterruptedError as error:
        return Attempt(error.code, message=str(error), folder=folder)
    except RunFailure as error:
        return Attempt(1, message=str(error), folder=folder)
    except BaseException as error:
        if message := _describe_plugin_error(error, resolved):
            return Attempt(2, message=message, folder=folder)
        if not isinstance(error, KeyboardInterrupt):
            raise
        notice = "interrupted inside a step; the same command resumes from the last checkpoint"
        return Attempt(130, message=notice, folder=folder)


def _describe_plugin_error(error: BaseException, resolved: ResolvedConfig) -> str:
    """One-line message for an error caused by users' code.

    Either users' code raised the error, or our code raised it because of a value from users' code.
    "" if the run has no users' code or the error has a message of its own.
    """
    from components import registry
    from components.contracts.plugins.calls import is_own_error
    from components.contracts.user_code import is_foreign, is_raised_by_user, refusal

    if not resolved.settings.plugins or is_own_error(error):
        return ""
    if is_raised_by_user(error):
        return str(refusal(f"plugins={','.join(resolved.settings.plugins)}", error))
    chosen = {
        f"{role}={name}": registry.get(role, name) for role, name in resolved.choice.items() if name
    }
    theirs = {choice: cls for choice, cls in chosen.items() if is_foreign(cls)}
    if not theirs:
        return ""
    what = f"{', '.join(theirs)}: returned an invalid value"
    return str(refusal(what, error, list(theirs.values())[-1]))


def show_done(job: ResolvedConfig, facts: Facts) -> Attempt:
    """Show the record of a finished run."""
    printer.out.print(
        f"done already, {facts['ended']}: showing the recorded results; fresh=true repeats the run"
    )
    return show(job, facts, ensure_pushed(job.settings, job.folder))


def show(job: ResolvedConfig, facts: Facts, handover: Handover | None) -> Attempt:
    """Show the results and the folder of a run."""
    console.show_record(job, facts, handover)
    return Attempt(0, values(facts["result"], job.settings.objective), folder=job.folder)


def run_once(argv: list[str]) -> int | None:
    """Run one job, composed once, and return its exit code.

    Hydra's own entry point composes the config twice.  Returns None for command lines that
    Hydra handles: flags, sweeps.
    """
    if any(word.startswith("-") for word in argv) or is_sweep(argv):
        return None
    cfg = compose_in_full(argv)
    hydra_cfg = cfg.hydra
    if hydra_cfg.mode == RunMode.MULTIRUN or hydra_cfg.job.env_set or hydra_cfg.job.chdir:
        return None
    HydraConfig.instance().set_config(cfg)  # for ${hydra:…} in a user's config
    composed = without_hydra(cfg)
    if message := sweep_required_message(argv):
        raise ConfigError(message)
    usage.claim_process()
    return attempt(composed).report()


def run_job(cfg: DictConfig) -> float | list[float] | None:
    """Run a job that Hydra has composed; in a sweep a failed job does not stop the next one."""
    hydra_config = HydraConfig.get()
    overrides = list_overrides(hydra_config)
    sweeping = hydra_config.mode == RunMode.MULTIRUN
    launcher = hydra_config.runtime.choices.get("hydra/launcher")
    is_parallel = (
        sweeping and launcher == "joblib"
    )  # others log each job themselves, or name the log
    with number_lines(hydra_config.job.num) if is_parallel else nullcontext():
        if sweeping:
            printer.headline(title(hydra_config.job.num, overrides))
        outcome = attempt(without_hydra(cfg, hydra_config))
        outcome.report()
    if sweeping:
        note(
            JobOutcome(
                hydra_config.job.num, overrides, outcome.code, outcome.message, outcome.folder
            )
        )
    if not sweeping or outcome.code > 128:
        raise SystemExit(outcome.code)
    return outcome.value
