"""Draws of another program: read, refused, and scored as a row of a suite."""

import math

import numpy as np
import pytest
from support.runs.arena_suites import toy
from support.runs.configured import component, load
from support.small.small_problems import advance

from components.errors import ConfigMismatchError
from components.inference.peers.given_draws import read_draws
from runner.arena import command
from runner.arena.given import join_names, make_given_row
from runner.arena.rows import find_snapshots, read_lines
from runner.arena.scores import final_lines
from runner.errors import ConfigError

SCALED = ("posteriordb", {"posterior": "linear-regression-sim"})  # a parameter is exp(θ)
FUNNEL = ("funnel", {"dim": 3})


def open_target(dataset, keys):
    """Problem, streams and model."""
    problem, rng = load(dataset, **keys)
    return problem, rng, component("model", "target_density").build(problem, rng)


def sample(target, method="nuts", steps=60, **options):
    """Problem, streams, model and posterior of a short run."""
    problem, rng, model = open_target(*target)
    inference = component("inference", method, **options)
    state, _ = advance(inference, inference.init(model, problem, rng), problem, rng, 0, steps)
    return problem, rng, model, inference.posterior(state)


@pytest.mark.parametrize("target", [SCALED, FUNNEL])
@pytest.mark.parametrize(
    ("method", "options"),
    [("nuts", {"chains": 3, "warmup": 30}), ("importance_sampling", {"proposal": "gaussian"})],
)
def test_saved_draws_get_the_same_scores(target, method, options, tmp_path):
    problem, rng, model, posterior = sample(target, method, **options)
    (path,) = posterior.artefacts(tmp_path)
    original_scores = problem.score(posterior, rng)
    given = component("inference", "given_draws", file=str(path), gradients=7)
    after = problem.score(given.posterior(given.init(model, problem, rng)), rng)
    assert original_scores.keys() == after.keys()
    for name, value in original_scores.items():
        assert math.isclose(value, after[name], rel_tol=1e-9, abs_tol=1e-12), name


def test_array_has_the_parameters_in_their_order(tmp_path):
    problem, rng, model, posterior = sample(SCALED, chains=3, warmup=30)
    np.save(tmp_path / "draws.npy", posterior.values.numpy())
    draws = read_draws(tmp_path / "draws.npy", model, posterior.start[:1])
    original_scores = problem.score(posterior, rng)
    after = problem.score(draws, rng)
    assert after["b2_max"] == pytest.approx(original_scores["b2_max"], rel=1e-9)
    assert original_scores.keys() - after.keys() >= {"ksd"}, "θ is not known"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[..., :2], r"the shape is \[2, 9, 2\], not \[chain, draw, 3\]"),
        (lambda x: x[0], "the shape is"),
        (lambda x: x * np.nan, "not finite; use an ArviZ file or a .npy array of θ"),
        (lambda x: x[:, :3], "with 4 draws or more"),
        (lambda x: np.array("text"), "the shape is"),
    ],
)
def test_invalid_array_is_refused(change, message, tmp_path):
    problem, rng, model = open_target(*FUNNEL)
    path = tmp_path / "draws.npy"
    np.save(path, change(np.random.default_rng(0).normal(size=(2, 9, 3))))
    with pytest.raises(ConfigMismatchError, match=message.replace("θ", problem.names[0])):
        read_draws(path, model, problem.sample_prior(1, rng.init))


@pytest.mark.parametrize(
    ("variables", "coords", "message"),
    [
        ({"alpha": (2, 9)}, {}, "posterior lacks beta; it has alpha"),
        ({"beta": (2, 9, 3)}, {}, "posterior lacks sigma"),
        ({"beta": (2, 9, 2), "sigma": (2, 9)}, {}, r"beta has the coordinates"),
        (
            {"beta": (2, 9, 3), "sigma": (2, 9)},
            {"i": [3, 2, 1]},
            r"coordinates \[\[.*3.*\]\], not \[\[1, 2, 3\]\]",
        ),
    ],
)
def test_file_with_other_parameters_is_refused(variables, coords, message, tmp_path):
    from arviz_base import from_dict

    problem, rng, model = open_target(*SCALED)
    values = {name: np.zeros(shape) for name, shape in variables.items()}
    tree = from_dict({"posterior": values}, dims={"beta": ["i"]} if coords else {}, coords=coords)
    path = tmp_path / "draws.nc"
    tree.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ConfigMismatchError, match=message):
        read_draws(path, model, problem.sample_prior(1, rng.init))


@pytest.mark.parametrize(
    ("words", "costs", "message"),
    [
        (["nromal.npy"], [], "no problem of toy, did you mean normal"),
        (["normal=a.npy", "normal=b.nc"], [], r"b\.nc: normal already has the file a\.npy"),
        (["normal=draws.npy"], ["gradient=3"], "gradient"),
        (["normal=draws.npy"], [], r"draws\.npy: .*; use an ArviZ"),
    ],
)
def test_invalid_arguments_are_refused(words, costs, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, ConfigMismatchError), match=message):
        make_given_row(toy(), "mine", words, costs)


def test_names_of_a_vector_are_joined_in_their_order():
    names = ["mu", *(f"beta[{i}]" for i in range(1, 12)), "x1", "x2", "tau"]
    assert join_names(names) == "mu, beta[1] … beta[11], x1, x2, tau"


@pytest.mark.slow  # runs in separate processes
def test_scored_draws_are_a_row_with_stated_costs(toy_suite, tmp_path, capsys):
    problem, *_ = load("gaussian")
    draws = np.random.default_rng(0).normal(size=(4, 500, len(problem.names)))
    np.save(tmp_path / "normal.npy", draws)
    words = ["arena", "score", "toy", str(tmp_path / "normal.npy"), "--as", "mine"]
    out = tmp_path / "out"
    code = command.main([*words, "--cost", "gradients=300", f"--output-dir={out}"])
    assert code == 0
    suite = toy()
    lines = read_lines(suite, "small", find_snapshots(suite, "small", out))
    final = final_lines(lines).query("row == 'mine (costs stated)'")
    assert final.loc[final["problem"] == "mixture", "state"].tolist() == ["not run"]
    scored = final[final["problem"] == "normal"]
    assert scored["cost/gradients"].tolist() == [300, 300]
    assert (scored["error_mean"] < 0.2).all()
    assert command.main(["arena", "show", "toy", "--problems", f"--output-dir={out}"]) == 0
    assert f"normal: {join_names(problem.names)}" in capsys.readouterr().out
