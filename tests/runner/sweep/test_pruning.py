"""Pruning: jobs report to the database of trials from separate processes and are stopped by it."""

from __future__ import annotations

import os

import optuna
import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from optuna.trial import TrialState

from runner.execution.signals import RunPrunedError
from runner.sweep.search_space import storage
from runner.sweep.trial import ENV_VARIABLE, report_to_trial

X = "x=interval(-10, 10)"


def quadratic(cfg: DictConfig) -> float:
    return (cfg.x - 3.0) ** 2 + (cfg.y + 1.0) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["median", "halving", "hyperband"])
def test_pruning_stops_the_job_and_marks_the_trial(sweep, rule):
    reached: dict[float, int] = {}

    def train_quadratic(cfg: DictConfig) -> float:
        report = report_to_trial("loss", of=9, run="toy/abc")
        assert report is not None
        for step in range(1, 10):
            reached[cfg.x] = step
            report(step, {"loss": quadratic(cfg) + 10.0 / step})
        return quadratic(cfg)

    n = "hydra.sweeper.n_trials=10"
    study = sweep(
        train_quadratic, X, n, f"hydra.sweeper.pruner={rule}", "hydra.sweeper.startup_trials=3"
    )
    pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
    assert pruned
    assert len(pruned) < 10
    assert all(reached[t.params["x"]] < 9 for t in pruned)
    assert all(len(t.intermediate_values) == reached[t.params["x"]] for t in study.trials)
    assert study.best_value == min(quadratic(DictConfig({"x": x, "y": 0.0})) for x in reached)
    assert {t.user_attrs["run"] for t in study.trials} == {"toy/abc"}


def test_last_evaluation_of_a_run_is_never_pruned(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/optuna.db"
    study = optuna.create_study(study_name="s", storage=storage(url))
    study.set_user_attr("pruner", ["median", 1, 0])
    for value in (0.0, 0.0, 5.0):
        study.ask().report(value, 10)
    for number in (0, 1):
        study.tell(number, 0.0)
    monkeypatch.setenv(ENV_VARIABLE, f"{url}|s|2")
    report = report_to_trial("loss", of=10, run="r")
    report(10, {"loss": 5.0})
    with pytest.raises(RunPrunedError):  # replicates remain, so the trial is pruned
        report_to_trial("loss", of=50, run="r")(10, {"loss": 5.0})
    assert study.trials[2].user_attrs == {"run": "r", "steps": 50, "pruned at": 10}
    reported = study.trials[2].intermediate_values
    report_to_trial("ess", of=50, run="r")(9, {"loss": 5.0})  # no such score yet
    report_to_trial(None, of=50, run="r")(9, {})
    assert study.trials[2].intermediate_values == reported


def test_run_outside_a_sweep_reports_nothing(monkeypatch):
    monkeypatch.delenv(ENV_VARIABLE, raising=False)
    assert report_to_trial(None, 10, "r") is None


@pytest.mark.slow
def test_parallel_jobs_report_from_their_own_processes(sweep):
    study = sweep(
        quadratic_with_process,
        X,
        "hydra.sweeper.n_trials=4",
        "hydra/launcher=joblib",
        "hydra.launcher.n_jobs=2",
        "hydra.sweeper.pruner=median",
    )
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 4
    assert all(t.intermediate_values for t in study.trials)
    assert os.getpid() not in {t.user_attrs["run"] for t in study.trials}


def quadratic_with_process(cfg: DictConfig) -> float:
    report = report_to_trial(None, 1, str(os.getpid()))
    assert report is not None
    assert HydraConfig.get().job.num is not None
    report(1, {"loss": quadratic(cfg)})
    return quadratic(cfg)
