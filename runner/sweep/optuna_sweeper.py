"""A Hydra sweeper on Optuna: ``hydra/sweeper=optuna 'inference.lr=tag(log, interval(1e-4,
1e-1))'``; the plug-in ``hydra_plugins.runner`` makes it known to Hydra.

Search spaces are written in Hydra's own grammar (on the command line, or in
``hydra.sweeper.params``): ``interval(a, b)`` a real, ``int(interval(a, b))`` an integer, ``tag(log,
…)`` a logarithmic scale, ``range(a, b, step)`` and ``choice(a, b)`` (or ``a,b``) the values listed.
Everything else is fixed for all trials.

A search follows ``objective``, or the score of its kind of problem, where that score is better: its
first line says so, and on which rows.

Trials live in ``<output_dir>/optuna.db`` under ``study_name``.  The same command goes on with a
study up to ``n_trials`` in total: trials that were under way when a sweep was stopped are launched
again with the same values, so their runs resume from their checkpoints, and the values proposed
next are those that an undisturbed sweep would have proposed (the sampler of trial k is seeded by
(seed, k)).

Pruning crosses processes, and machines that share the disk, through that database.  Each job is
launched with the environment variable RUNNER_TRIAL = ``storage|study|trial number``
(``hydra.job.env_set``, which every launcher honours).  In the job, ``report_to_trial`` stores the
objective after every evaluation, of one replicate after the other, as an intermediate value and
asks the study's pruner; if it says stop, the run is checkpointed and ends as ``pruned``.

Source: Akiba et al. (2019); Bergstra et al. (2011) for TPE.
"""

from __future__ import annotations

import math
import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from runner.compose.objectives import (
    DIRECTION_KEY,
    DIRECTIONS,
    OBJECTIVES_VARIABLE,
    several,
    single,
)
from runner.disk.atomic import alive
from runner.disk.inside import inside
from runner.errors import ConfigError, require_package
from runner.sweep.goal import describe_objectives, search_facts
from runner.sweep.search_space import (
    PRUNERS,
    SAMPLERS,
    SINGLE_OBJECTIVE_SAMPLERS,
    absolute,
    distribution,
    grid,
    params_to_overrides,
    pruner,
    sampler,
    storage,
)
from runner.sweep.study_facts import apart, build_study_facts, name_of, upgrade_study_facts
from runner.sweep.trial import ENV_VARIABLE, failure, note_failure
from runner.terminal.printer import out

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

MAX_USER_ERROR_TRIALS = 3  # trials that all fail with the user's mistake before the sweep stops


@dataclass(eq=False)
class OptunaSearch(Sweeper):
    """Search over overrides, in batches of ``n_jobs`` given to any launcher."""

    study_name: str | None
    storage: str
    folder: str
    direction: Any
    n_trials: int
    n_jobs: int | None
    sampler: str
    seed: int
    startup_trials: int
    pruner: str
    warmup_steps: int
    reduction: int
    objectives: Any
    params: DictConfig | dict[str, Any] | None
    hydra_context: HydraContext = field(init=False)
    config: DictConfig = field(init=False)
    launcher: Launcher = field(init=False)
    at_once: int = field(init=False)
    default_objective: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.storage = absolute(self.storage)

    def _check(self) -> None:
        for key, choices in (("direction", DIRECTIONS), ("sampler", SAMPLERS), ("pruner", PRUNERS)):
            value = getattr(self, key)
            if value not in choices and not (key == "direction" and value is None):
                raise ConfigError(f"hydra.sweeper.{key}={value}: not one of {' | '.join(choices)}")
        for key, least in (("n_trials", 1), ("n_jobs", 1), ("startup_trials", 1), ("reduction", 2)):
            value = getattr(self, key)
            if not (isinstance(value, int) and value >= least) and not (
                key == "n_jobs" and value is None
            ):
                raise ConfigError(
                    f"hydra.sweeper.{key}={value}: out of range, must be an integer ≥ {least}"
                )
        if self.objectives and self.direction is not None:
            raise ConfigError(
                f"{DIRECTION_KEY}={self.direction}: hydra.sweeper.objectives holds a direction of each"
            )
        if self.sampler == "cmaes":
            require_package("cmaes", "hydra.sweeper.sampler=cmaes", "sweep")
        if len(self.objectives or ()) > 1 and self.sampler in SINGLE_OBJECTIVE_SAMPLERS:
            raise ConfigError(
                f"hydra.sweeper.sampler={self.sampler}: takes one objective; several take tpe, gp, qmc or nsgaii"
            )
        if self.objectives and self.pruner != "none":
            raise ConfigError(
                f"hydra.sweeper.pruner={self.pruner}: of several objectives none tells when to give a trial up; pruner=none"
            )

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        from hydra.core.plugins import Plugins

        for package in ("optuna", "plotly"):
            require_package(package, "hydra/sweeper=optuna", "sweep")
        self.objectives = several(self.objectives, config.get("objective"))
        self._check()
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )
        parallel = self.n_jobs or config.hydra.launcher.get("n_jobs") or 1
        self.at_once = (os.cpu_count() or 1) if parallel < 0 else parallel

    # -- the study
    # -----------------------------------------------------------------------------------------------------
    def _space(self, arguments: list[str]) -> tuple[dict[str, BaseDistribution], list[str]]:
        words = [f"{key!s}={value}" for key, value in (self.params or {}).items()] + list(arguments)
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        space: dict[str, BaseDistribution] = {}
        fixed: dict[str, str] = {}
        for override in parser.parse_overrides(words):
            key = override.get_key_element()
            space.pop(key, None)  # the command line takes precedence over params
            fixed.pop(key, None)
            if override.is_sweep_override():
                space[key] = distribution(override)
            else:
                fixed[key] = (
                    f"{key}={override.get_value_element_as_str()}"
                    if not override.is_delete()
                    else key
                )
        if not space:
            raise ConfigError(
                "hydra/sweeper=optuna: nothing to search; write e.g. 'inference.lr=tag(log, interval(1e-4, 1e-1))'"
            )
        if "objective" in space:
            raise ConfigError(
                "objective: a search has one; give it a single value, or several in hydra.sweeper.objectives"
            )
        return space, list(fixed.values())

    def _set_objectives(self, overrides: list[str]) -> list[str]:
        """Settles what is optimised, given the overrides of a trial; the lines that say so.

        Raises:
            ConfigError: nobody knows where the objective should go, or the trial, which would
                say so, is a mistake.
        """
        composed = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        objective: str | None = composed.get("objective")
        mistake: ConfigError | None = None
        try:
            facts = search_facts(composed, overrides)
        except ConfigError as error:  # of this trial; others may have none
            facts = None
            mistake = error
        if not self.objectives:
            self.default_objective = (
                None if objective is not None or facts is None else facts.default_objective
            )
            metric = objective or self.default_objective
            if metric is None and self.direction is None:
                raise mistake or ConfigError(
                    f"objective: not given; name the score that is searched by, or {DIRECTION_KEY}=…"
                )
            self.objectives = [single(metric or "objective", self.direction)]
        if facts is not None:
            facts.check(self.objectives)
        return describe_objectives(self.objectives, self.default_objective is not None, facts)

    def _open(self, space: dict[str, BaseDistribution], fixed: list[str]) -> Study:
        import optuna
        from optuna.study import StudyDirection
        from optuna.trial import TrialState

        choice = self.config.hydra.runtime.choices.get("experiment")
        facts = build_study_facts(fixed, space, self.objectives)
        self.name = self.study_name or choice or name_of(facts)
        if not re.fullmatch(r"[\w.\-]+", self.name):
            raise ConfigError(
                f"hydra.sweeper.study_name={self.name}: letters, digits, dots, dashes and underscores only"
            )
        inside(Path(self.folder), self.name, "hydra.sweeper.study_name")
        self.store = store = storage(self.storage)
        study = optuna.create_study(
            study_name=self.name,
            storage=store,
            load_if_exists=True,
            directions=[StudyDirection[one.direction.upper()] for one in self.objectives],
            pruner=pruner(self.pruner, self.startup_trials, self.warmup_steps, self.reduction),
        )
        before = upgrade_study_facts(study.user_attrs, facts)
        if before != facts and all(
            t.state == TrialState.FAIL for t in study.get_trials(deepcopy=False)
        ):
            # it holds only failures: start over
            optuna.delete_study(study_name=self.name, storage=store)
            return self._open(space, fixed)
        if before != facts:
            raise ConfigError(
                f"hydra.sweeper.study_name={self.name}: begun with another {apart(before, facts)}; give this sweep another name"
            )
        holder = study.user_attrs.get("held by")
        me = f"{socket.gethostname()}:{os.getpid()}"
        if holder and holder != me and _is_process_alive(holder):
            raise ConfigError(
                f"study {self.name} is already being swept (process {holder}); wait for it, or give another name"
            )
        study.set_user_attr("facts", facts)
        study.set_user_attr("held by", me)
        study.set_user_attr("fixed", fixed)
        study.set_user_attr("objectives", [one.metric for one in self.objectives])
        study.set_user_attr(
            "pruner", [self.pruner, self.startup_trials, self.warmup_steps, self.reduction]
        )
        return study

    # -- the sweep
    # -----------------------------------------------------------------------------------------------------
    def sweep(self, arguments: list[str]) -> float | None:
        """Runs trials until there are ``n_trials``, or all of a grid; returns the best value, of
        one objective."""
        import optuna
        from optuna.trial import TrialState

        from runner.sweep.best import show_best
        from runner.sweep.kept import keep

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        space, fixed = self._space(arguments)
        guess = optuna.create_study(sampler=sampler("random", self.seed, 0, 1)).ask(space)
        trial = [*fixed, *params_to_overrides(guess.params)]
        self.validate_batch_is_legal([trial])  # a wrong key stops here, before any trial
        aim = self._set_objectives(trial)
        study = self._open(space, fixed)
        for line in aim:
            out.print(line)
        if self.sampler == "grid":
            self.n_trials = min(
                self.n_trials, math.prod(len(values) for values in grid(space).values())
            )
        try:
            while True:
                trials = study.get_trials(deepcopy=False)
                batch = [(t.number, t.params) for t in trials if t.state == TrialState.RUNNING][
                    : self.at_once
                ]
                while len(batch) < self.at_once and len(trials) < self.n_trials:
                    study.sampler = sampler(
                        self.sampler, self.seed, len(trials), self.startup_trials, space
                    )
                    new_trial = study.ask(space)
                    batch.append((new_trial.number, new_trial.params))
                    trials = study.get_trials(deepcopy=False)
                if not batch:
                    break
                self._launch(study, batch, fixed)
        finally:
            study.set_user_attr("held by", "")
            keep(study, self.store, Path(self.folder) / self.name)
        return show_best(study, Path(self.folder) / self.name)

    def _job_overrides(self, number: int) -> list[str]:
        """Overrides by which a job knows its trial and its objectives."""
        overrides = [_set_variable(ENV_VARIABLE, f"{self.storage}|{self.name}|{number}")]
        if self.default_objective is not None:
            overrides.append(f"objective={self.default_objective}")
        if len(self.objectives) > 1:
            names = "|".join(one.metric for one in self.objectives)
            overrides.append(_set_variable(OBJECTIVES_VARIABLE, names))
        return overrides

    def _launch(
        self, study: Study, batch: list[tuple[int, dict[str, Any]]], fixed: list[str]
    ) -> None:
        from optuna.trial import TrialState

        from runner.execution.signals import RunInterruptedError
        from runner.sweep.best import show_trial

        jobs = [
            [*fixed, *params_to_overrides(params), *self._job_overrides(number)]
            for number, params in batch
        ]
        try:
            returns = self.launcher.launch(jobs, initial_job_idx=batch[0][0])
        except Exception as error:
            # A worker that dies takes its launcher with it: the others are launched again, one by
            # one, and resume.
            if len(batch) > 1:
                for one in batch:
                    self._launch(study, [one], fixed)
                return
            returns = [JobReturn(status=JobStatus.FAILED, _return_value=error)]
        stopped: BaseException | None = None
        study.sampler = sampler(
            "random", self.seed, 0, 1
        )  # a grid's would stop a loop of Optuna's own, which does not exist here
        for (number, params), job in zip(batch, returns, strict=True):
            value = job._return_value
            if job.status == JobStatus.COMPLETED and (scores := _finite(value)):
                study.tell(number, scores)
            elif "pruned at" in study.get_trials(deepcopy=False)[number].user_attrs:
                study.tell(number, state=TrialState.PRUNED)
            elif isinstance(value, RunInterruptedError):
                stopped = value  # its trial stays open: the next sweep goes on with it
                continue
            else:
                note_failure(
                    self.store, self.name, number, failure(value, params_to_overrides(params))
                )
                study.tell(number, state=TrialState.FAIL)
            show_trial(study, number, params)
        if stopped is not None:
            raise stopped
        _refuse_common_failure(study)


def _set_variable(name: str, value: str) -> str:
    """Override that gives a job an environment variable."""
    return f"+hydra.job.env_set.{name}={QuotedString(value, Quote.single).with_quotes()}"


def _refuse_common_failure(study: Study) -> None:
    """Stop a sweep in which all trials fail for the same reason.

    Raises:
        ConfigError: with the reason.
    """
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    failures = {t.user_attrs.get("failure") for t in trials if t.state == TrialState.FAIL}
    if (
        len(trials) >= MAX_USER_ERROR_TRIALS
        and all(t.state == TrialState.FAIL for t in trials)
        and len(failures) == 1
    ):
        raise ConfigError(f"the first {len(trials)} trials all failed alike: {failures.pop()}")


def _finite(value: Any) -> list[float]:
    """Scores of a job; empty if they are not all finite numbers."""
    scores = value if isinstance(value, list) else [value]
    numbers = all(isinstance(one, int | float) and math.isfinite(one) for one in scores)
    return [float(one) for one in scores] if numbers else []


def _is_process_alive(holder: str) -> bool:
    """True if ``host:process`` is a living process of this machine.

    A process of another machine is assumed to be alive.
    """
    host, _, pid = holder.rpartition(":")
    return host != socket.gethostname() or alive(int(pid))
