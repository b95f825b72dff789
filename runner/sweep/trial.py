"""Pruning of a sweep's trial in the process of its run: intermediate values are reported to the
database of trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.errors import ConfigError
from runner.sweep.outcomes import SWEEP_VARIABLE, read_outcomes

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

ENV_VARIABLE = "RUNNER_TRIAL"  # storage|study|trial number


def identity(store: BaseStorage, study: str, number: int) -> int:
    """Id of a study's trial in the database."""
    return store.get_trial_id_from_study_id_trial_number(
        store.get_study_id_from_name(study), number
    )


def failure(value: Any, overrides: list[str]) -> str:
    """Cause of a job's failure: its exception, or its recorded error."""
    if isinstance(value, BaseException):
        return str(value) if isinstance(value, ConfigError) else f"{type(value).__name__}: {value}"
    for outcome in reversed(read_outcomes(Path(os.environ.get(SWEEP_VARIABLE) or os.devnull))):
        if outcome.message and set(overrides) <= set(outcome.overrides):
            return outcome.message
    return "objective is not finite"


def report_to_trial(
    objective: str | None, of: int | None, run: str
) -> Callable[[int, Mapping[str, float]], None] | None:
    """Callback for the evaluations of a sweep's job; None outside a sweep or without pruning.

    ``of`` is the number of steps of all replicates, if known.  The last evaluation of a run is
    reported but not used for pruning.
    """
    if not os.environ.get(ENV_VARIABLE):
        return None
    import optuna

    from runner.execution.signals import RunPrunedError
    from runner.sweep.search_space import pruner, storage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url, name, number = os.environ[ENV_VARIABLE].rsplit("|", 2)
    store = storage(url)
    study = optuna.load_study(study_name=name, storage=store)
    trial_id = identity(store, name, int(number))
    store.set_trial_user_attr(trial_id, "run", run)
    rule = study.user_attrs["pruner"]
    if of is not None:
        store.set_trial_user_attr(trial_id, "steps", of)
    if rule[0] == "none":
        return None
    study.pruner = pruner(*rule, of=of)

    def report(step: int, metrics: Mapping[str, float]) -> None:
        key = objective or next(iter(metrics), "")
        value = metrics.get(key)
        if (
            value is None
        ):  # no scores during burn-in; an unknown name is reported at the end of the run
            return
        store.set_trial_intermediate_value(trial_id, step, float(value))
        if (of is None or step < of) and study.pruner.prune(study, store.get_trial(trial_id)):
            # read by the sweeper, independent of the job's return value
            store.set_trial_user_attr(trial_id, "pruned at", step)
            raise RunPrunedError(f"trial {number} of {name} at step {step}, {key} {value:.4g}")

    return report
