"""The Optuna sweeper on a toy task: goals, resuming, failures, grids, several objectives."""

from __future__ import annotations

import os

import pandas as pd
import pytest
import yaml
from omegaconf import DictConfig
from optuna.trial import TrialState

from runner.errors import ConfigError
from runner.execution.signals import RunInterruptedError

X = "x=interval(-10, 10)"
Y = "y=interval(-10, 10)"
GRID = "hydra.sweeper.sampler=grid"


def quadratic(cfg: DictConfig) -> float:
    return (cfg.x - 3.0) ** 2 + (cfg.y + 1.0) ** 2


def test_a_sweep_ends_with_its_best(sweep, tmp_path, capsys):
    study = sweep(quadratic, X, "y=-1.0", "hydra.sweeper.n_trials=6", "objective=rmse")
    assert [t.number for t in study.trials] == list(range(6))
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    facts = yaml.safe_load((tmp_path / "sweeps" / "toy" / "best.yaml").read_text())
    (best,) = facts["best"]
    assert best["values"] == {"rmse": min(t.value for t in study.trials)}
    assert best["overrides"] == [f"x={study.best_params['x']!r}"]
    assert set(facts["fixed"]) == {"objective=rmse", "y=-1.0"}
    assert len((tmp_path / "sweeps" / "toy" / "trials.csv").read_text().splitlines()) == 7
    shown = capsys.readouterr().out
    assert f"best     {best['values']['rmse']:.4g} with x=" in shown
    assert shown.startswith("search   rmse: minimize\n")


def test_search_prefers_better_scores(sweep, tmp_path, capsys):
    study = sweep(quadratic, "x=choice(1,2,9)", "objective=robust_accuracy/eps\\=0.1", GRID)
    assert study.direction.name == "MAXIMIZE"
    assert study.best_params == {"x": "9"}
    best = yaml.safe_load((tmp_path / "sweeps" / "toy" / "best.yaml").read_text())
    assert best["objectives"] == [{"metric": "robust_accuracy/eps=0.1", "direction": "maximize"}]
    against = ["hydra.sweeper.direction=minimize", "hydra.sweeper.study_name=other"]
    sweep(quadratic, "x=choice(1,2)", "objective=accuracy", *against, GRID)
    note = "a higher accuracy is better, but the search is set to minimize it"
    assert note in capsys.readouterr().out


NOWHERE = (
    "objective=entropy: entropy has no default direction; set "
    "hydra.sweeper.direction=minimize or maximize"
)
TWO = "hydra.sweeper.objectives=[{metric: near, direction: minimize}, {metric: far, direction: minimize}]"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["objective=entropy"], NOWHERE),
        (["objective=mean/x"], "objective=mean/x: mean has no default direction"),
        (["objective=acuracy"], "objective=acuracy: unknown score, did you mean accuracy?"),
        (["objective=null"], "objective: missing; set it to the score to optimise"),
        ([TWO, "hydra.sweeper.pruner=median"], "pruning requires a single objective"),
        ([TWO, "objective=near"], "objective=near: conflicts with hydra.sweeper.objectives"),
        ([TWO, "hydra.sweeper.sampler=cmaes"], "sampler=cmaes: supports one objective"),
        ([GRID], r"x: hydra.sweeper.sampler=grid requires a finite set of values; use choice"),
        (["hydra.sweeper.sampler=best"], r"hydra.sweeper.sampler=best: not one of tpe \| random"),
        (
            ["hydra.sweeper.n_trials=0"],
            "hydra.sweeper.n_trials=0: out of range; must be an integer ≥ 1",
        ),
        (
            ["hydra.sweeper.reduction=1"],
            "hydra.sweeper.reduction=1: out of range; must be an integer ≥ 2",
        ),
        (["hydra.sweeper.study_name=a b"], "hydra.sweeper.study_name=a b: must consist of letters"),
    ],
)
def test_invalid_sweeps_are_refused_before_any_trial(sweep, words, message):
    if "cmaes" in words[-1]:
        pytest.importorskip("cmaes")
    with pytest.raises(ConfigError, match=message):
        sweep(pytest.fail, X, *words)


@pytest.mark.slow
def test_resumed_sweep_equals_an_uninterrupted_one(sweep, tmp_path):
    def trials(number: int) -> list[dict]:
        words = (f"hydra.sweeper.n_trials={number}", "hydra.sweeper.startup_trials=2")
        return [trial.params for trial in sweep(quadratic, X, Y, *words).trials]

    first = trials(3)
    resumed = trials(6)
    assert resumed[:3] == first
    assert trials(6) == resumed, "enough"
    (tmp_path / "optuna.db").unlink()
    assert trials(6) == resumed


def test_interrupted_trial_is_repeated_with_the_same_values(sweep):
    values: list[float] = []

    def stopped_once(cfg: DictConfig) -> float:
        values.append(cfg.x)
        if len(values) == 3:
            raise RunInterruptedError(15, 7)
        return quadratic(cfg)

    with pytest.raises(RunInterruptedError):
        sweep(stopped_once, X, "hydra.sweeper.n_trials=4")
    study = sweep(stopped_once, X, "hydra.sweeper.n_trials=4")
    assert values[2] == values[3]  # the third trial again
    assert len(values) == 5
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 4


@pytest.mark.slow
def test_failed_trials_do_not_stop_a_sweep(sweep):
    def fragile(cfg: DictConfig) -> float:
        if cfg.x < 0:
            raise RuntimeError("negative")
        return float("nan") if cfg.x < 2 else quadratic(cfg)

    study = sweep(fragile, X, "hydra.sweeper.n_trials=8", "hydra.sweeper.sampler=random")
    by_state = {t.params["x"]: t.state for t in study.trials}
    assert len(by_state) == 8
    assert {x < 2 for x in by_state} == {True, False}
    assert all((state == TrialState.FAIL) == (x < 2) for x, state in by_state.items())
    assert study.best_params["x"] >= 2


def test_user_error_stops_a_sweep(sweep, tmp_path):
    def wrong(cfg: DictConfig) -> float:
        raise ConfigError("steps=0: out of range; must be > 0")

    with pytest.raises(ConfigError, match=r"first 3 trials .* same reason: steps=0"):
        sweep(wrong, X, "hydra.sweeper.n_trials=50")
    # corrected, under the same name: a study with only failures restarts
    assert len(sweep(quadratic, X, "y=1", "hydra.sweeper.n_trials=2").trials) == 2
    with pytest.raises(Exception, match="Could not override 'z'"):
        sweep(quadratic, "z=interval(0,1)", "hydra.sweeper.study_name=other")


@pytest.mark.slow
def test_another_space_under_the_same_name_is_refused(sweep):
    sweep(quadratic, X, "hydra.sweeper.n_trials=2")
    with pytest.raises(ConfigError, match="begun with another fixed"):
        sweep(quadratic, X, "y=2", "hydra.sweeper.n_trials=3")
    with pytest.raises(ConfigError, match="begun with another space"):
        sweep(quadratic, "x=interval(0, 1)", "hydra.sweeper.n_trials=3")


@pytest.mark.slow
def test_study_in_use_is_refused(sweep, tmp_path):
    study = sweep(quadratic, X, "hydra.sweeper.n_trials=1")
    import socket

    study.set_user_attr("held by", f"{socket.gethostname()}:{os.getppid()}")  # a live process
    with pytest.raises(ConfigError, match="in use by another sweep"):
        sweep(quadratic, X, "hydra.sweeper.n_trials=2")
    study.set_user_attr("held by", f"{socket.gethostname()}:999999999")  # a dead process
    assert len(sweep(quadratic, X, "hydra.sweeper.n_trials=2").trials) == 2


def test_grid_is_searched_once_and_ends(sweep):
    words = ("x=choice(1,2,3)", "y=range(-1,1)", GRID)
    study = sweep(quadratic, *words)
    values = [(t.params["x"], t.params["y"]) for t in study.trials]
    assert sorted(values) == [(x, y) for x in "123" for y in (-1, 0)]
    assert study.best_params == {"x": "3", "y": -1}
    again = sweep(quadratic, *words).trials
    assert [(t.params["x"], t.params["y"]) for t in again] == values


def two_sided(cfg: DictConfig) -> list[float]:
    """Objectives with a trade-off between 0 and 2, beyond which both grow."""
    assert os.environ["RUNNER_OBJECTIVES"] == "near|far"
    return [cfg.x**2, (cfg.x - 2.0) ** 2]


def test_several_objectives_end_in_the_pareto_front(sweep, tmp_path, capsys):
    study = sweep(two_sided, "x=choice(-1,0,1,2,3)", TWO, "hydra.sweeper.sampler=grid")
    best = yaml.safe_load((tmp_path / "sweeps" / "toy" / "best.yaml").read_text())
    assert {trial["overrides"][0] for trial in best["best"]} == {"x=0", "x=1", "x=2"}
    assert best["best"][0]["values"].keys() == {"near", "far"}
    assert best["objectives"][1] == {"metric": "far", "direction": "minimize"}
    trials = pd.read_csv(tmp_path / "sweeps" / "toy" / "trials.csv")
    assert set(trials["params_x"][trials["best"]]) == {0, 1, 2}
    assert "front    3 of 5 trials" in capsys.readouterr().out
    assert [d.name for d in study.directions] == ["MINIMIZE", "MINIMIZE"]
