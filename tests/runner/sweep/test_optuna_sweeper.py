"""The Optuna sweeper on a toy task: search spaces, resuming, failures, pruning, and that TPE is
worth its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import hydra
import optuna
import pandas as pd
import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from runner.compose.objectives import Objective
from runner.errors import ConfigError
from runner.execution.signals import RunInterruptedError, RunPrunedError
from runner.sweep.search_space import absolute, distribution, sampler, storage
from runner.sweep.study_facts import apart, build_study_facts, name_of
from runner.sweep.trial import ENV_VARIABLE, report_to_trial

CONFIG = """
x: 0.0
y: 0.0
kind: plain
n: 1
objective: null
output_dir: {folder}
hydra:
  searchpath: [pkg://conf]
  output_subdir: null
  run: {{dir: .}}
defaults: [override hydra/job_logging: none, override hydra/hydra_logging: none, _self_]
"""
X, Y = "x=interval(-10, 10)", "y=interval(-10, 10)"


def quadratic(cfg: DictConfig) -> float:
    return (cfg.x - 3.0) ** 2 + (cfg.y + 1.0) ** 2


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., optuna.Study]:
    """Runs ``toy -m hydra/sweeper=optuna …`` in this process; the study afterwards."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text(CONFIG.format(folder=tmp_path))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # exceptions come through

    def go(task: Callable[[DictConfig], float], *arguments: str) -> optuna.Study:
        own_direction = any(
            word.startswith(("hydra.sweeper.objectives", "objective=")) for word in arguments
        )
        arguments = (*arguments, *([] if own_direction else ["hydra.sweeper.direction=minimize"]))
        place = f"hydra.sweep.dir={tmp_path}/multirun"
        monkeypatch.setattr(
            sys,
            "argv",
            [
                "toy",
                "-m",
                "hydra/sweeper=optuna",
                "hydra.sweeper.study_name=toy",
                place,
                *arguments,
            ],
        )
        try:
            hydra.main(
                config_path=str(tmp_path / "conf"), config_name="config", version_base="1.3"
            )(task)()
        finally:
            GlobalHydra.instance().clear()
        return optuna.load_study(study_name="toy", storage=f"sqlite:///{tmp_path}/optuna.db")

    return go


def space(text: str):
    return distribution(OverridesParser.create().parse_override(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=interval(0, 1)", FloatDistribution(0, 1)),
        ("x=tag(log, interval(1e-4, 1))", FloatDistribution(1e-4, 1, log=True)),
        ("x=int(interval(1, 9))", IntDistribution(1, 9)),
        ("x=tag(log, int(interval(1, 9)))", IntDistribution(1, 9, log=True)),
        ("x=range(1, 10, 2)", IntDistribution(1, 9, step=2)),
        ("x=range(1, 10, 3)", IntDistribution(1, 7, step=3)),  # as Hydra's range: 10 is left out
        ("x=range(0.0, 1.0, 0.25)", FloatDistribution(0, 0.75, step=0.25)),
        ("x=choice(a, b)", CategoricalDistribution(["a", "b"])),
        ("x=a,b", CategoricalDistribution(["a", "b"])),
        # quotes stay: the value goes into an override again
        ("x='a b',c", CategoricalDistribution(["'a b'", "c"])),
        ("x=[1,2],[3]", CategoricalDistribution(["[1,2]", "[3]"])),
    ],
)
def test_search_spaces_in_hydras_grammar(text, expected):
    assert space(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=interval(1, 1)", "x: interval(1, 1) is empty"),
        (
            "x=interval(0.1, inf)",
            "x: interval(0.1, inf) must have two finite ends, less than 1.8e308 apart",
        ),
        (
            "x=interval(-1e308, 1e308)",
            "x: interval(-1e+308, 1e+308) must have two finite ends, less than 1.8e308 apart",
        ),
        ("x=tag(log, interval(0, 1))", "x: a logarithmic interval begins above 0, not at 0"),
        ("x=tag(lgo, interval(0, 1))", "x: unknown tag lgo; the tag is log"),
        ("x=tag(log, choice(1, 2))", "x: the tag log is for interval(…)"),
    ],
)
def test_mistakes_in_search_spaces(text, message):
    with pytest.raises(ConfigError) as error:
        space(text)
    assert str(error.value) == message


def test_a_sweep_ends_with_its_best(sweep, tmp_path, capsys):
    study = sweep(quadratic, X, "y=-1.0", "hydra.sweeper.n_trials=6", "objective=rmse")
    assert [t.number for t in study.trials] == list(range(6))
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    best = yaml.safe_load((tmp_path / "sweeps" / "toy" / "best.yaml").read_text())
    assert best["value"] == min(t.value for t in study.trials)
    assert best["overrides"] == [f"x={study.best_params['x']!r}"]
    assert set(best["fixed"]) == {"objective=rmse", "y=-1.0"}
    assert len((tmp_path / "sweeps" / "toy" / "trials.csv").read_text().splitlines()) == 7
    shown = capsys.readouterr().out
    assert f"best     {best['value']:.4g} with x=" in shown
    assert shown.startswith("search   rmse: minimize\n")


def test_a_search_goes_where_its_score_is_better(sweep, tmp_path, capsys):
    study = sweep(
        quadratic,
        "x=choice(1,2,9)",
        "objective=robust_accuracy/eps\\=0.1",
        "hydra.sweeper.sampler=grid",
    )
    assert study.direction.name == "MAXIMIZE"
    assert study.best_params == {"x": "9"}
    best = yaml.safe_load((tmp_path / "sweeps" / "toy" / "best.yaml").read_text())
    assert (best["objective"], best["direction"]) == ("robust_accuracy/eps=0.1", "maximize")
    against = ["hydra.sweeper.direction=minimize", "hydra.sweeper.study_name=other"]
    sweep(quadratic, "x=choice(1,2)", "objective=accuracy", *against, "hydra.sweeper.sampler=grid")
    assert (
        "accuracy is better the higher it is, and the search is told to minimize it"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("entropy", "objective=entropy: neither a higher nor a lower entropy is better in itself; say where it should go, "
         "hydra.sweeper.direction=minimize or maximize"),
        ("mean/x", "objective=mean/x: neither a higher nor a lower mean is better"),
        ("acuracy", "objective=acuracy: no score of the runner's, did you mean accuracy?"),
        ("null", "objective: not given; name the score that is searched by"),
    ],
)  # fmt: skip
def test_an_objective_of_unknown_direction_is_refused(sweep, objective, message):
    with pytest.raises(ConfigError, match=message):
        sweep(quadratic, X, f"objective={objective}")


@pytest.mark.slow
def test_a_resumed_sweep_goes_on_as_if_undisturbed(sweep, tmp_path):
    sweep(quadratic, X, Y, "hydra.sweeper.n_trials=3", "hydra.sweeper.startup_trials=2")
    study = sweep(quadratic, X, Y, "hydra.sweeper.n_trials=6", "hydra.sweeper.startup_trials=2")
    assert [t.number for t in study.trials] == list(range(6))
    resumed = [t.params for t in study.trials]
    (tmp_path / "optuna.db").unlink()
    whole = sweep(quadratic, X, Y, "hydra.sweeper.n_trials=6", "hydra.sweeper.startup_trials=2")
    assert [t.params for t in whole.trials] == resumed
    assert (
        len(
            sweep(
                quadratic, X, Y, "hydra.sweeper.n_trials=6", "hydra.sweeper.startup_trials=2"
            ).trials
        )
        == 6
    )  # enough


def test_an_interrupted_trial_is_launched_again_with_the_same_values(sweep):
    seen: list[float] = []

    def stopped_once(cfg: DictConfig) -> float:
        seen.append(cfg.x)
        if len(seen) == 3:
            raise RunInterruptedError(15, 7)
        return quadratic(cfg)

    with pytest.raises(RunInterruptedError):
        sweep(stopped_once, X, "hydra.sweeper.n_trials=4")
    study = sweep(stopped_once, X, "hydra.sweeper.n_trials=4")
    assert seen[2] == seen[3]  # the third again
    assert len(seen) == 5
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


def test_the_users_own_mistake_stops_a_sweep(sweep, tmp_path):
    def wrong(cfg: DictConfig) -> float:
        raise ConfigError("steps=0: out of range, must be > 0")

    with pytest.raises(ConfigError, match=r"first 3 trials all failed alike: steps=0"):
        sweep(wrong, X, "hydra.sweeper.n_trials=50")
    # mended, under the same name: a study that holds failures alone is begun anew
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


def test_searches_without_an_experiment_have_the_name_of_their_command():
    space, least = {"x": FloatDistribution(0, 1)}, [Objective("loss", "minimize")]
    one = build_study_facts(["steps=10", "tracking=false"], space, least)
    same = build_study_facts(["steps=10"], space, least)
    other = build_study_facts(["steps=20"], space, least)
    assert name_of(one) == name_of(same)  # where it is tracked changes no number
    assert name_of(one) != name_of(other)
    assert apart(one, other) == "fixed (it had steps=10)"
    assert apart(same | {"fixed": []}, other) == "fixed (it had no steps=20)"
    # another search
    assert name_of(one) != name_of(
        build_study_facts(["steps=10"], space, [Objective("rmse", "minimize")])
    )
    most = build_study_facts(["steps=10"], space, [Objective("loss", "maximize")])
    assert apart(one, most) == "direction (it had loss minimize)"


@pytest.mark.slow
def test_a_study_in_use_is_refused(sweep, tmp_path):
    study = sweep(quadratic, X, "hydra.sweeper.n_trials=1")
    import socket

    study.set_user_attr("held by", f"{socket.gethostname()}:{os.getppid()}")  # a process that lives
    with pytest.raises(ConfigError, match="already being swept"):
        sweep(quadratic, X, "hydra.sweeper.n_trials=2")
    study.set_user_attr("held by", f"{socket.gethostname()}:999999999")  # one that died
    assert len(sweep(quadratic, X, "hydra.sweeper.n_trials=2").trials) == 2


def test_a_grid_is_gone_through_once_each_and_ends(sweep, capsys):
    study = sweep(quadratic, "x=choice(1,2,3)", "y=range(-1,1)", "hydra.sweeper.sampler=grid")
    assert sorted((t.params["x"], t.params["y"]) for t in study.trials) == [
        (x, y) for x in "123" for y in (-1, 0)
    ]
    assert study.best_params == {"x": "3", "y": -1}
    again = [t.params for t in study.trials]
    assert [
        t.params
        for t in sweep(
            quadratic, "x=choice(1,2,3)", "y=range(-1,1)", "hydra.sweeper.sampler=grid"
        ).trials
    ] == again
    with pytest.raises(
        ConfigError, match=r"x: hydra.sweeper.sampler=grid needs values to list: choice"
    ):
        sweep(quadratic, X, "hydra.sweeper.sampler=grid", "hydra.sweeper.study_name=other")


def two_sided(cfg: DictConfig) -> list[float]:
    """Both fall between 0 and 2, where one is bought with the other; beyond that both grow."""
    assert os.environ["RUNNER_OBJECTIVES"] == "near|far"
    return [cfg.x**2, (cfg.x - 2.0) ** 2]


TWO = "hydra.sweeper.objectives=[{metric: near, direction: minimize}, {metric: far, direction: minimize}]"


def test_several_objectives_end_in_the_pareto_front(sweep, tmp_path, capsys):
    study = sweep(two_sided, "x=choice(-1,0,1,2,3)", TWO, "hydra.sweeper.sampler=grid")
    best = yaml.safe_load((tmp_path / "sweeps" / "toy" / "best.yaml").read_text())
    assert {one["overrides"][0] for one in best["front"]} == {"x=0", "x=1", "x=2"}
    assert best["front"][0]["values"].keys() == {"near", "far"}
    assert best["objectives"][1] == {"metric": "far", "direction": "minimize"}
    assert len((tmp_path / "sweeps" / "toy" / "front.csv").read_text().splitlines()) == 4
    trials = pd.read_csv(tmp_path / "sweeps" / "toy" / "trials.csv")
    assert set(trials["params_x"][trials["best"]]) == {0, 1, 2}
    assert "front    3 of 5 trials" in capsys.readouterr().out
    assert [d.name for d in study.directions] == ["MINIMIZE", "MINIMIZE"]
    with pytest.raises(
        ConfigError, match="of several objectives none tells when to give a trial up"
    ):
        sweep(two_sided, X, TWO, "hydra.sweeper.pruner=median")
    with pytest.raises(ConfigError, match=r"objective=near: hydra.sweeper.objectives already says"):
        sweep(two_sided, X, TWO, "objective=near")


def test_tpe_beats_random_on_a_quadratic():
    wide = {"x": FloatDistribution(-100, 100), "y": FloatDistribution(-100, 100)}

    def best(name: str) -> float:
        study = optuna.create_study()
        for k in range(60):
            study.sampler = sampler(name, seed=1, trial=k, startup_trials=10)
            trial = study.ask(wide)
            study.tell(trial, quadratic(DictConfig(trial.params)))
        return study.best_value

    assert best("tpe") < 0.5 * best("random")  # 13.8 against 61.4


@pytest.mark.parametrize("name", ["gp", "cmaes", "qmc", "nsgaii"])
def test_samplers_by_name_improve_and_go_on_alike(name, recwarn):
    if name == "cmaes":
        pytest.importorskip("cmaes")
    wide = {"x": FloatDistribution(-100, 100), "y": FloatDistribution(-100, 100)}

    def search(trials: int) -> optuna.Study:
        study = optuna.create_study()
        for k in range(trials):  # each with a sampler of its own, as after a restart
            study.sampler = sampler(name, seed=1, trial=k, startup_trials=3)
            trial = study.ask(wide)
            study.tell(trial, quadratic(DictConfig(trial.params)))
        return study

    values = [trial.value for trial in search(7).trials]
    assert values == [trial.value for trial in search(7).trials]
    assert min(values) < min(values[:3])
    assert len(set(values)) == 7
    assert not [w for w in recwarn if issubclass(w.category, optuna.exceptions.ExperimentalWarning)]


def test_cmaes_takes_one_objective(sweep):
    pytest.importorskip("cmaes")
    with pytest.raises(ConfigError, match="sampler=cmaes: takes one objective"):
        sweep(quadratic, X, TWO, "hydra.sweeper.sampler=cmaes")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["median", "halving", "hyperband"])
def test_pruning_reaches_the_job_and_marks_the_trial(sweep, rule):
    reached: dict[float, int] = {}

    def trained(cfg: DictConfig) -> float:
        report = report_to_trial("loss", of=9, run="toy/abc")
        assert report is not None
        for step in range(1, 10):
            reached[cfg.x] = step
            report(step, {"loss": quadratic(cfg) + 10.0 / step})
        return quadratic(cfg)

    n = "hydra.sweeper.n_trials=10"
    study = sweep(trained, X, n, f"hydra.sweeper.pruner={rule}", "hydra.sweeper.startup_trials=3")
    pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
    assert pruned
    assert len(pruned) < 10
    assert all(reached[t.params["x"]] < 9 for t in pruned)
    assert all(len(t.intermediate_values) == reached[t.params["x"]] for t in study.trials)
    assert study.best_value == min(quadratic(DictConfig({"x": x, "y": 0.0})) for x in reached)
    assert {t.user_attrs["run"] for t in study.trials} == {"toy/abc"}


def test_the_last_evaluation_of_a_run_is_never_pruned(tmp_path, monkeypatch):
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
    with pytest.raises(RunPrunedError):  # replicates still to come: the trial is given up
        report_to_trial("loss", of=50, run="r")(10, {"loss": 5.0})
    assert study.trials[2].user_attrs == {"run": "r", "steps": 50, "pruned at": 10}
    before = study.trials[2].intermediate_values
    report_to_trial("ess", of=50, run="r")(9, {"loss": 5.0})  # no such score yet
    report_to_trial(None, of=50, run="r")(9, {})
    assert study.trials[2].intermediate_values == before


def test_outside_a_sweep_there_is_nothing_to_report_to(monkeypatch):
    monkeypatch.delenv(ENV_VARIABLE, raising=False)
    assert report_to_trial(None, 10, "r") is None


@pytest.mark.slow
def test_parallel_jobs_report_from_their_own_processes(sweep):
    study = sweep(
        quadratic_with_process, X, "hydra.sweeper.n_trials=4", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2",
        "hydra.sweeper.pruner=median",
    )  # fmt: skip
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 4
    assert all(t.intermediate_values for t in study.trials)
    assert os.getpid() not in {t.user_attrs["run"] for t in study.trials}


def quadratic_with_process(cfg: DictConfig) -> float:
    report = report_to_trial(None, 1, str(os.getpid()))
    assert report is not None
    assert HydraConfig.get().job.num is not None
    report(1, {"loss": quadratic(cfg)})
    return quadratic(cfg)


def test_trials_of_an_output_folder_of_any_name_lie_in_it(tmp_path):
    folder = tmp_path / "a %41 b?x=1#y"
    optuna.create_study(study_name="s", storage=storage(absolute(f"sqlite:///{folder}/optuna.db")))
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert (folder / "optuna.db").is_file()
