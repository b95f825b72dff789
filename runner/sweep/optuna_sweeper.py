"""Hydra sweeper based on Optuna: ``hydra/sweeper=optuna 'inference.lr=tag(log, interval(1e-4,
1e-1))'``, registered by the plug-in ``hydra_plugins.runner``.

Search spaces are written in Hydra's grammar (on the command line, or in ``hydra.sweeper.params``):
``interval(a, b)`` for a real number, ``int(interval(a, b))`` for an integer, ``tag(log, …)`` for a
logarithmic scale, ``range(a, b, step)`` and ``choice(a, b)`` (or ``a,b``) for the listed values.
Other keys are the same for all trials.

A search optimises ``objective``, or the default score of its kind of problem, in the direction of
that score; its first line shows the objective and the rows for the scores.

Trials are stored in ``<output_dir>/optuna.db`` under ``study_name``.  The same command continues a
study up to ``n_trials`` in total: trials that were interrupted are launched again with the same
values, so their runs resume from their checkpoints, and the next proposed values equal the proposals
of an uninterrupted sweep (the sampler of trial k is seeded by (seed, k)).

Pruning works across processes, and across machines that share the disk, through that database.
Each job has the environment variable RUNNER_TRIAL = ``storage|study|trial number``
(``hydra.job.env_set``, which all launchers support).  In the job, ``report_to_trial`` stores the
objective after every evaluation, averaged over sequential replicates, as an intermediate value and
queries the study's pruner; if the trial is pruned, the run is checkpointed and ends as ``pruned``.

Source: Akiba et al. (2019); Bergstra et al. (2011) for TPE.
"""

from __future__ import annotations

import math
import os
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

from components.errors import require_package
from runner.catalogue.settings import OBJECTIVES_VARIABLE
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.sweep.goal import settle_goal
from runner.sweep.objectives import several
from runner.sweep.search_settings import check_settings, check_study_name
from runner.sweep.search_space import (
    absolute,
    grid,
    params_to_overrides,
    parse_space,
    sampler,
    storage,
)
from runner.sweep.study_facts import build_study_facts, name_of, open_study
from runner.sweep.trial import ENV_VARIABLE, failure, identity
from runner.terminal.printer import out

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

Trial = tuple[int, dict[str, Any]]  # number and values
MAX_USER_ERROR_TRIALS = 3  # failed trials with the same user error after which the sweep stops


@dataclass(eq=False)
class OptunaSearch(Sweeper):
    """Search over overrides, in batches of ``n_jobs`` for any launcher."""

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

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        from hydra.core.plugins import Plugins

        for package in ("optuna", "plotly"):
            require_package(package, "hydra/sweeper=optuna", "sweep")
        self.objectives = several(self.objectives, config.get("objective"))
        check_settings(vars(self))
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )
        parallel = self.n_jobs or config.hydra.launcher.get("n_jobs") or 1
        self.at_once = (os.cpu_count() or 1) if parallel < 0 else parallel

    def _open(self, space: dict[str, BaseDistribution], fixed: list[str]) -> Study:
        facts = build_study_facts(fixed, space, self.objectives)
        choice = self.config.hydra.runtime.choices.get("experiment")
        self.name = self.study_name or choice or name_of(facts)
        inside(Path(self.folder), check_study_name(self.name), "hydra.sweeper.study_name")
        self.store = storage(self.storage)
        rule = (self.pruner, self.startup_trials, self.warmup_steps, self.reduction)
        study = open_study(self.name, self.store, self.objectives, rule, facts)
        for key, value in {
            "facts": facts,
            "held by": f"{socket.gethostname()}:{os.getpid()}",
            "fixed": fixed,
            "objectives": [objective.metric for objective in self.objectives],
            "pruner": list(rule),
        }.items():
            study.set_user_attr(key, value)
        return study

    def sweep(self, arguments: list[str]) -> float | None:
        """Run trials up to ``n_trials`` or to the end of a grid; return the best value of a single
        objective."""
        import optuna

        from runner.sweep.best import show_best
        from runner.sweep.search_link import link_search

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        words = [f"{key!s}={value}" for key, value in (self.params or {}).items()]
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        space, fixed = parse_space(parser.parse_overrides([*words, *arguments]))
        guess = optuna.create_study(sampler=sampler("random", self.seed, 0, 1)).ask(space)
        trial = [*fixed, *params_to_overrides(guess.params)]
        self.validate_batch_is_legal([trial])  # reports invalid keys before any trial
        composed = self.hydra_context.config_loader.load_sweep_config(self.config, trial)
        goal = settle_goal(composed, self.objectives, self.direction)
        self.objectives, self.default_objective, lines = goal
        study = self._open(space, fixed)
        for line in lines:
            out.print(line)
        if self.sampler == "grid":
            size = math.prod(len(values) for values in grid(space).values())
            self.n_trials = min(self.n_trials, size)
        try:
            while batch := self._next_batch(study, space):
                self._launch(study, batch, fixed)
        finally:
            study.set_user_attr("held by", "")
            link_search(Path(self.folder) / self.name)
        return show_best(study, Path(self.folder) / self.name)

    def _next_batch(self, study: Study, space: dict[str, BaseDistribution]) -> list[Trial]:
        """Interrupted trials, then new ones."""
        from optuna.trial import TrialState

        trials = study.get_trials(deepcopy=False)
        running = [(t.number, t.params) for t in trials if t.state == TrialState.RUNNING]
        batch = running[: self.at_once]
        n_trials = len(trials)
        while len(batch) < self.at_once and n_trials < self.n_trials:
            study.sampler = sampler(self.sampler, self.seed, n_trials, self.startup_trials, space)
            new_trial = study.ask(space)
            batch.append((new_trial.number, new_trial.params))
            n_trials = len(study.get_trials(deepcopy=False))
        return batch

    def _job_overrides(self, number: int) -> list[str]:
        """Overrides that pass the trial and the objectives to a job."""
        overrides = [_set_variable(ENV_VARIABLE, f"{self.storage}|{self.name}|{number}")]
        if self.default_objective is not None:
            overrides.append(f"objective={self.default_objective}")
        if len(self.objectives) > 1:
            names = "|".join(objective.metric for objective in self.objectives)
            overrides.append(_set_variable(OBJECTIVES_VARIABLE, names))
        return overrides

    def _launch(self, study: Study, batch: list[Trial], fixed: list[str]) -> None:
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
            # the death of a worker ends its launcher: the other trials are launched again, one by
            # one, and resume
            if len(batch) > 1:
                for trial in batch:
                    self._launch(study, [trial], fixed)
                return
            returns = [JobReturn(status=JobStatus.FAILED, _return_value=error)]
        stopped: BaseException | None = None
        # GridSampler would stop Optuna's loop, which does not exist here
        study.sampler = sampler("random", self.seed, 0, 1)
        for (number, params), job in zip(batch, returns, strict=True):
            value = job._return_value
            if job.status == JobStatus.COMPLETED and (scores := _finite(value)):
                study.tell(number, scores)
            elif "pruned at" in study.get_trials(deepcopy=False)[number].user_attrs:
                study.tell(number, state=TrialState.PRUNED)
            elif isinstance(value, RunInterruptedError):
                stopped = value  # the trial stays open: the next sweep continues it
                continue
            else:
                reason = failure(value, params_to_overrides(params))
                trial_id = identity(self.store, self.name, number)
                self.store.set_trial_user_attr(trial_id, "failure", reason)
                study.tell(number, state=TrialState.FAIL)
            show_trial(study, number, params)
        if stopped is not None:
            raise stopped
        _refuse_common_failure(study)


def _set_variable(name: str, value: str) -> str:
    """Override that sets an environment variable of a job."""
    return f"+hydra.job.env_set.{name}={QuotedString(value, Quote.single).with_quotes()}"


def _refuse_common_failure(study: Study) -> None:
    """Stop a sweep in which all trials fail for the same reason.

    Raises:
        ConfigError: the first trials all failed; the message gives the reason.
    """
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    outcomes = {(t.state, t.user_attrs.get("failure")) for t in trials}
    state, reason = next(iter(outcomes))
    if len(trials) >= MAX_USER_ERROR_TRIALS and len(outcomes) == 1 and state == TrialState.FAIL:
        raise ConfigError(f"the first {len(trials)} trials failed for the same reason: {reason}")


def _finite(value: Any) -> list[float]:
    """Scores of a job; empty if one is not finite."""
    scores = value if isinstance(value, list) else [value]
    numbers = all(isinstance(score, int | float) and math.isfinite(score) for score in scores)
    return [float(score) for score in scores] if numbers else []
