"""Invalid environments of users: error messages of one line with the location."""

import re
import sys

import pytest
from support.runs.configured import component, load
from support.small.small_games import PETTINGZOO as RUN
from support.small.small_games import WEATHER

from components.errors import ConfigMismatchError
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.errors import ConfigError

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"env": "parallel_envs:make_continuous"},
            "actions of p0 are Box; only Discrete ones are supported",
        ),
        (
            {"kwargs": {"source": "unseeded"}},
            "two episodes from reset.*draw all random numbers from this seed",
        ),
        ({"kwargs": {"source": "global"}}, "two episodes from reset"),
        ({"kwargs": {"source": "remembers"}}, "reset all state between episodes"),
        ({"kwargs": {"players": 1}}, "has 1 player, but a game requires two or more"),
        (
            {"agent": "she"},
            "dataset.agent=she: not a player of parallel_envs:Weather, which has p0, p1",
        ),
        (
            {"env": "parallel_envs:make_masked"},
            "the observation of p0 has action_mask; every action must be allowed at every move",
        ),
        (
            {"env": "parallel_envs:make_unsized"},
            "observations of p0 are Sequence, which has no fixed size",
        ),
        ({"env": "parallel_envs:nothing"}, "returns a object, not a ParallelEnv; return one"),
        ({"env": "parallel_envs:number"}, "has no function or class number; it has .*Fork"),
        (
            {"env": "parallel_envs:Wether"},
            "parallel_envs has no function or class Wether",
        ),
        (
            {"env": "no_such_module"},
            "No module named 'no_such_module' .*; install it with pip, or put its folder on PYTHONPATH",
        ),
        (
            {"kwargs": {"wind": 3}},
            r"call with dataset.kwargs: TypeError: .*'wind' \(parallel_envs.py, line \d+\)",
        ),
        (
            {"kwargs": {"odd": "breaks"}},
            r"reset\(seed=\d+\): RuntimeError: no weather today \(parallel_envs.py, line \d+\); fix it there",
        ),
        (
            {"kwargs": {"odd": "forgets"}},
            r"step: KeyError: 'p1' \(parallel_envs.py, line \d+\)",
        ),
        ({"kwargs": {"odd": "nan"}}, "an observation of 'p0' does not have 2 finite"),
        (
            {"env": "parallel_envs:make_without_players"},
            r"possible_agents, which .*: AttributeError: .*parallel_envs.py",
        ),
    ],
)
def test_invalid_environment_raises_one_line(keys, message):
    with pytest.raises(ConfigMismatchError, match=message) as caught:
        load("pettingzoo", replicates=4, **({"env": WEATHER} | keys))
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith("dataset.")


IN_ONE_LINE = {
    "mask in info": "the info of b has action_mask; every action must be allowed",
    "reset returns observations": "reset.*: AttributeError: 'str' object has no attribute 'items'",
    "infos are a list": "AttributeError: 'list' object has no attribute 'items'",
    "no observation at reset": "KeyError: 'a'",
    "observation outside": r"the observation -1 is not in Discrete\(1\)",
    "observation None": "the observation None is not in Discrete",
    "a stranger": "KeyError: 'z'",
    "rewards are two": "ValueError: can only convert an array of size 1",
    "reward is None": "TypeError: float.* argument must be .* not 'NoneType'",
    "reward is nan": r"a reward is not finite \(nan\)",
    "left out of the rewards": "KeyError: 'a'",
    "opponent stays": "'b' is in agents after it left, or joined late",
    "four values": r"not enough values to unpack \(expected 5, got 4\)",
    "returns None": "cannot unpack non-iterable NoneType object",
    "ends the process": r"step: SystemExit: the code exits the process \(3\)",
}


@pytest.mark.parametrize("odd", IN_ONE_LINE)
def test_invalid_return_value_names_user_code(odd):
    with pytest.raises(ConfigMismatchError, match=IN_ONE_LINE[odd]) as caught:
        load("pettingzoo", replicates=4, env="parallel_envs:Odd", kwargs={"odd": odd})
    assert str(caught.value).startswith("dataset.env=parallel_envs:Odd: ")
    assert re.search(r"\(parallel_envs.py, line \d+\)", str(caught.value))
    assert len(str(caught.value).splitlines()) == 1


def test_missing_package_is_refused(monkeypatch):
    monkeypatch.setattr("components.errors.find_spec", lambda name: None)
    with pytest.raises(ConfigMismatchError, match=r"pip install 'bayes-runner\[pettingzoo\]'"):
        load("pettingzoo", env=WEATHER)


@pytest.mark.parametrize("env", ["a b:c", "a:", ":b", "os:path.join", "a/b.py", ""])
def test_invalid_import_path_is_refused(env):
    with pytest.raises(ValueError, match="import path such as my_game:MyGame"):
        component("dataset", "pettingzoo", env=env)


def test_code_runs_only_if_its_module_is_named(tmp_path, monkeypatch):
    (tmp_path / "taken_in.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for env in ("taken_in", "os:system", "runner.commands.app:main"):
        module = env.partition(":")[0]
        message = rf"dataset.env={env}: is code outside the runner; add 'plugins=\[{module}\]' if you trust it"
        keys = [*RUN, f"dataset.env={env}", f"output_dir={tmp_path}"]
        with pytest.raises(ConfigError, match=message):
            prepare(compose(keys))
    assert "taken_in" not in sys.modules
