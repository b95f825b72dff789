"""The Hydra application: one composed config in, one run out."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from runner.catalogue.words import explicit_keys, is_sweep, sweep_required_message
from runner.commands.done import find_finished_run
from runner.commands.unexpected import describe_unexpected
from runner.compose.compose import Composed, compose_in_full, without_hydra
from runner.compose.expand import ResolvedConfig, resolve
from runner.errors import ConfigError, RunFailure
from runner.execution.screen import show_run as console
from runner.record import usage
from runner.record.checks import combine_checks
from runner.sweep.objectives import values
from runner.sweep.outcomes import JobOutcome, note, title
from runner.sweep.trial import ENV_VARIABLE, report_to_trial
from runner.terminal import printer, streams
from runner.terminal.numbered import number_lines
from runner.tracking.handover import Handover, ensure_pushed

if TYPE_CHECKING:
    from runner.compose.job import Job

# On import: a sweep's jobs, in any process, import this module before they compose.
streams.install()


@dataclass(frozen=True)
class Attempt:
    """Result of an attempt to run a job."""

    code: int  # the exit code of its process
    value: float | list[float] | None = None  # its objective, or several
    message: str = ""  # the error
    folder: Path | None = None  # the folder of its record, if it has one


def attempt(composed: Composed, device: str | None = None) -> Attempt:
    """Run one job.

    ``device``: the device to resume on, in place of the recorded one.
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
        active_run, _ = run(job, evaluation_callback(job))
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


def show_done(job: ResolvedConfig, facts: dict[str, Any]) -> Attempt:
    """Show the record of a finished run."""
    printer.out.print(
        f"done already, {facts['ended']}: showing the recorded results; fresh=true repeats the run"
    )
    return show(job, facts, ensure_pushed(job.settings, job.folder))


def show(job: ResolvedConfig, facts: dict[str, Any], handover: Handover | None) -> Attempt:
    """Show the results and the folder of a run."""
    # imported late because it loads pydantic's validation of tables
    from runner.statistics.published import published_scores

    settings = job.settings
    result = facts["result"]
    if settings.smoke:
        console.show_result(job, result)
        printer.note("smoke run: it shows that everything works; its scores mean nothing")
    else:
        printed, reason = published_scores(settings.paper_tables, job.config, job.data)
        console.show_result(job, result, printed, reason)
    for about, subject in (("run", "run"), ("attack", "security evaluation")):
        if rows := combine_checks(facts, about):
            console.show_checks(f"checks of the {subject}", rows)
    console.show_whereabouts(
        job.folder, handover, facts.get("artefacts", ()), facts.get("left_out", ())
    )
    return Attempt(0, values(result, settings.objective), folder=job.folder)


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
    outcome = attempt(composed)
    if outcome.message:
        printer.complain(outcome.message)
    sys.stdout.flush()
    return outcome.code


def run_job(cfg: DictConfig) -> float | list[float] | None:
    """Run a job that Hydra has composed; in a sweep a failed job does not stop the next one."""
    hydra_config = HydraConfig.get()
    # Unresolved: an override may hold an interpolation, and one that fails must fail with our
    # message.
    overrides: Any = OmegaConf.to_container(hydra_config.overrides.task, resolve=False)
    sweeping = hydra_config.mode == RunMode.MULTIRUN
    OmegaConf.set_struct(cfg, False)
    choices = hydra_config.runtime.choices
    is_parallel = (
        sweeping and choices.get("hydra/launcher") == "joblib"
    )  # others log each job themselves, or name the log
    with number_lines(hydra_config.job.num) if is_parallel else nullcontext():
        if sweeping:
            printer.headline(title(hydra_config.job.num, overrides))
        outcome = attempt(Composed(cfg, choices.get("experiment"), explicit_keys(overrides)))
        if outcome.message and outcome.code == 0:  # stopped early by a sweep, not a failure
            printer.out.print(outcome.message)
        elif outcome.message:
            printer.complain(outcome.message)
        sys.stdout.flush()
    if sweeping:
        note(
            JobOutcome(
                hydra_config.job.num, overrides, outcome.code, outcome.message, outcome.folder
            )
        )
    if not sweeping or outcome.code > 128:
        raise SystemExit(outcome.code)
    return outcome.value


def evaluation_callback(job: Job) -> Callable[[int, Mapping[str, float]], None] | None:
    """Callback that reports each evaluation to the sweeper; None without a sweeper."""
    settings = job.settings
    loops = 1 if job.is_vectorised else settings.replicates
    total = loops * settings.steps if settings.steps else None
    return report_to_trial(settings.objective, total, f"{job.folder.parent.name}/{job.folder.name}")
