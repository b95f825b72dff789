"""A density of a user with several methods: recommended, refused, and without a truth."""

import shlex
import sys

import pytest
from support.runs.arena_suites import run_here
from support.runs.json_output import read_objects

from components import registry
from runner.arena import figures
from runner.arena.fit import command
from runner.arena.suite import load_suite
from runner.disk.conf_folders import folders
from runner.study.study import run_remaining

EXAMPLES = command.KEYS.parents[3] / "docs" / "examples" / "bring_your_own"
DENSITY = """
def normal(theta, scale):
    return -0.5 * (theta / scale).square().sum(1)
"""
WRONG = """
from components.inference.mcmc.random_walk_mh import RandomWalkMH
from components.registry import register


@register("inference", "too_wide")
class TooWide(RandomWalkMH):
    'Metropolis-Hastings for the square root of the density.'

    def settle(self, state, proposal, proposed, log_ratio, generator):
        half = log_ratio - 0.5 * (proposed - state.value)
        return super().settle(state, proposal, proposed, half, generator)
"""


@pytest.fixture
def fit(tmp_path, monkeypatch, command_line):
    """Function that compares methods on a normal, in this process and with a small budget."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "my_density.py").write_text(DENSITY)
    (tmp_path / "too_wide.py").write_text(WRONG)
    (tmp_path / "scale.json").write_text('{"scale": 2.0}')
    keys = (folders()[0] / "inference" / "random_walk_mh.yaml").read_text()
    (tmp_path / "conf" / "inference").mkdir(parents=True)
    wrong = tmp_path / "conf" / "inference" / "too_wide.yaml"
    wrong.write_text(keys.replace("name: random_walk_mh", "name: too_wide"))
    budgets = {"small": {"gradients": 6000, "densities": 18000}}
    suite = load_suite("posteriors_small").model_copy(update={"replicates": 1, "budgets": budgets})
    monkeypatch.setattr(command, "load_suite", lambda name: suite)
    monkeypatch.setattr(command, "run_remaining", run_here)
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    monkeypatch.setattr("runner.execution.replicate.Replicate.write", lambda *_: None)
    words = ["fit", "my_density.py:normal", "--data", "scale.json", "dataset.dim=1"]
    yield lambda *more: command_line(*words, "--plugin=too_wide", "--config-dir=conf", *more)
    registry._registered.pop(("inference", "too_wide"), None)
    for module in ("too_wide", "my_density"):
        sys.modules.pop(module, None)


def test_wrong_method_is_marked_and_not_recommended(fit, tmp_path, monkeypatch):
    truth = (["dataset.mean=[0]", "dataset.sd=[2]"], "8 chains")
    monkeypatch.setattr(command, "find_truth", lambda *_: truth)
    code, printed, error = fit("--methods", "random_walk_mh,too_wide", "--json")
    assert code == 0, error
    lines = read_objects("fit", printed)
    marked = {line["row"]: line["†"] for line in lines if "row" in line}
    assert marked == {"random walk": "–", "too_wide": "1"}
    (advice,) = (line["recommended"] for line in lines if "recommended" in line)
    assert advice.startswith("random walk, the cheapest (")
    (page,) = tmp_path.glob("outputs/arena/fit_normal_*/small.html")
    assert "Recommended: random walk" in page.read_text()
    code, printed, _ = fit("--methods", "too_wide")
    assert code == 1
    assert "recommended nothing: no method solved it" in printed


def test_nothing_is_recommended_without_a_truth(fit, monkeypatch):
    words = ["inference=random_walk_mh", "inference.warmup=10", "steps=60"]
    keys = command.load_untrusted(command.KEYS)
    keys["rows"][0]["overrides"] = words
    monkeypatch.setattr(command, "load_untrusted", lambda path: keys)
    code, _, error = fit("--methods", "nuts")
    assert code == 1
    assert error.startswith("fit: without a truth, nothing can be recommended: 8 chains ")


def test_command_for_a_density_without_gradient_works(fit, tmp_path, monkeypatch, command_line):
    (tmp_path / "my_density.py").write_text(DENSITY.replace("theta /", "theta.detach() /"))
    monkeypatch.setattr(command, "run_remaining", run_remaining)
    code, _, error = fit("--methods", "nuts")
    assert code == 1
    assert "inference requires the gradient of the log joint" in error
    *words, steps = shlex.split(error.rpartition(", in the folder of the model: runner ")[2])
    assert steps == "steps=20000"
    code, printed, _ = command_line(*words, "steps=60", "inference.warmup=10", "tracking=false")
    assert code == 0
    assert "random_walk_mh (one replicate)" in printed


@pytest.mark.slow  # a long run
def test_sampler_is_recommended_for_eight_schools(command_line, tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setenv("PYTHONPATH", "")
    words = ["fit", "my_schools.py:log_density", "--data=schools.json", "--methods=mala,sgld"]
    support = f"dataset.support=[real,positive{',real' * 8}]"
    code, printed, _ = command_line(*words, "dataset.dim=10", support, f"--output-dir={tmp_path}")
    assert code == 0
    assert "recommended MALA" in printed
