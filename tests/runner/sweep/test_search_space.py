"""Search spaces in Hydra's grammar, samplers by name, and the identity of a search."""

from __future__ import annotations

import optuna
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from runner.errors import ConfigError
from runner.sweep.objectives import Objective
from runner.sweep.search_space import distribution, parse_space, sampler
from runner.sweep.study_facts import build_study_facts, name_of

WIDE = FloatDistribution(-100, 100)


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
        ("x=range(1, 10, 3)", IntDistribution(1, 7, step=3)),  # as in Hydra's range, 10 is excluded
        ("x=range(0.0, 1.0, 0.25)", FloatDistribution(0, 0.75, step=0.25)),
        ("x=choice(a, b)", CategoricalDistribution(["a", "b"])),
        ("x=a,b", CategoricalDistribution(["a", "b"])),
        # quotes are kept for use in an override
        ("x='a b',c", CategoricalDistribution(["'a b'", "c"])),
        ("x=[1,2],[3]", CategoricalDistribution(["[1,2]", "[3]"])),
    ],
)
def test_search_spaces_use_hydra_grammar(text, expected):
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
        ("x=tag(log, interval(0, 1))", "x: a logarithmic interval must begin above 0, not at 0"),
        ("x=tag(lgo, interval(0, 1))", "x: unknown tag lgo; use log"),
        ("x=tag(log, choice(1, 2))", "x: the tag log requires interval(…)"),
    ],
)
def test_invalid_search_spaces_are_refused(text, message):
    with pytest.raises(ConfigError) as error:
        space(text)
    assert str(error.value) == message


def test_last_override_of_a_key_counts():
    words = ["x=interval(0,1)", "y=2", "z=a,b", "x=3", "y=interval(0,1)", "~w"]
    spaces, fixed = parse_space(OverridesParser.create().parse_overrides(words))
    assert list(spaces) == ["z", "y"]
    assert fixed == ["x=3", "~w"]


def test_searches_without_an_experiment_are_named_by_command():
    def facts(*fixed, metric="loss", direction="minimize"):
        objectives = [Objective(metric, direction)]
        return build_study_facts(list(fixed), {"x": FloatDistribution(0, 1)}, objectives)

    first = facts("steps=10")
    other = facts("steps=20")
    most = facts("steps=10", direction="maximize")
    assert name_of(facts("steps=10", "tracking=false")) == name_of(first)  # changes no result
    names = [name_of(each) for each in (first, other, most, facts("steps=10", metric="rmse"))]
    assert len(set(names)) == 4


def search(name: str, n_trials: int, startup_trials: int) -> list[float]:
    """Values of a quadratic, with a new sampler for each trial as after a restart."""
    study = optuna.create_study()
    for k in range(n_trials):
        study.sampler = sampler(name, seed=1, trial=k, startup_trials=startup_trials)
        trial = study.ask({"x": WIDE, "y": WIDE})
        study.tell(trial, (trial.params["x"] - 3.0) ** 2 + (trial.params["y"] + 1.0) ** 2)
    return [trial.value for trial in study.trials]


def test_tpe_beats_random_on_a_quadratic():
    tpe, random = (min(search(name, 60, 10)) for name in ("tpe", "random"))
    assert tpe < 0.5 * random  # 13.8 versus 61.4


@pytest.mark.parametrize("name", ["gp", "cmaes", "qmc", "nsgaii"])
def test_samplers_by_name_improve_and_resume(name, recwarn):
    if name == "cmaes":
        pytest.importorskip("cmaes")
    values = search(name, 7, 3)
    assert values == search(name, 7, 3)
    assert min(values) < min(values[:3])
    assert len(set(values)) == 7
    assert not [w for w in recwarn if issubclass(w.category, optuna.exceptions.ExperimentalWarning)]
