"""Methods receive problems without their ground truth."""

import pytest
import torch
from support.runs.configured import load, made_job

from components import registry
from runner.execution.assembly import hide_truth
from runner.execution.execute import run


class Blind:
    """A stand-in for any method."""

    reads_truth = False


@pytest.mark.parametrize(
    ("dataset", "hidden"),
    [
        ("mixture_of_gaussians_2d", ["mean", "second_moment", "reference_draws", "log_normaliser"]),
        ("wiener_velocity", ["states", "means", "clean"]),
        ("bars", ["truth"]),
    ],
)
def test_truths_of_densities_states_and_topics_are_hidden(dataset, hidden):
    problem, rng = load(dataset)
    state = rng.data.get_state()
    shown = hide_truth(problem, Blind)
    assert torch.equal(rng.data.get_state(), state)  # nothing is drawn again
    assert all(getattr(shown, name) is None for name in hidden)
    assert any(getattr(problem, name) is not None for name in hidden)
    assert hide_truth(problem, type("Open", (), {"reads_truth": True})) is problem


def test_test_labels_are_masked_and_training_rows_kept():
    problem, _ = load("linear_simulation")
    shown = hide_truth(problem, Blind)
    assert not shown.test.mask.any()
    assert not shown.test.y.any()
    assert problem.test.mask.any()
    assert shown.train is problem.train
    assert shown.truth == {}


def test_sampler_receives_no_reference_moments(tmp_path, monkeypatch):
    problems = []
    method = registry.get("inference", "sgld")
    init = method.init

    def watch(self, model, problem, rng):
        problems.append(problem)
        return init(self, model, problem, rng)

    monkeypatch.setattr(method, "init", watch)
    run(made_job(tmp_path, "+experiment=mog", "smoke=true", "replicates=1"))
    assert [problem.mean for problem in problems] == [None]


def test_readers_of_the_truth_are_listed():
    """Analyses of simulated data, and a bound compared with its test error."""
    named = registry.names("inference")
    readers = {name for name in named if registry.get("inference", name).reads_truth}
    assert readers == {
        "conjugate_bayes",
        "four_statisticians",
        "maximum_likelihood",
        "pac_bayes",
        "ridge_path",
        "statistical_risk",
    }
