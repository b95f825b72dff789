"""A classifier that has collapsed to one class, or that returns probabilities instead of logits,
fails a check of the run."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component
from support.small.small_problems import classes, real

from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError
from components.evaluation.checks.class_predictions import (
    CLASS_CHECK_TITLE,
    LOGITS,
    class_checks,
    predict_test_rows,
)
from components.evaluation.checks.plugin_models import examine_model
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.record.facts import read


class Fixed:
    """Fixed logits [B, T, C]."""

    def __init__(self, logits):
        self.logits = logits

    def predict(self, x, generator):
        return Categorical(self.logits[: len(x)][None])


def verdicts(problem, logits, declared=False):
    return {
        c.name: (c.passed, c.detail)
        for c in class_checks(predict_test_rows(problem, Fixed(logits), Streams(0)), declared)
    }


def perfect_logits(problem):
    return torch.nn.functional.one_hot(problem.test.y, problem.n_classes).double() * 4 - 1


@pytest.mark.parametrize("n_tasks", [1, 2])
def test_one_class_predictions_fail(n_tasks):
    problem = classes(n_tasks=n_tasks)
    logits = perfect_logits(problem)
    assert verdicts(problem, logits)[CLASS_CHECK_TITLE] == (True, "3 of 3 classes")
    logits[:, -1] = torch.tensor([1.0, 5.0, -1.0])  # one failing task suffices
    passed, detail = verdicts(problem, logits)[CLASS_CHECK_TITLE]
    assert passed is False
    assert detail.startswith("class 1 for all 60 test rows" + (" of task 1" if n_tasks > 1 else ""))


@pytest.mark.parametrize(("rows", "rare"), [(9, 4), (60, 2), (60, 0)])
def test_few_or_uniform_labels_leave_check_undecided(rows, rare):
    problem = classes(n_classes=2)
    y = torch.zeros(rows, 1, dtype=torch.long)
    y[:rare] = 1
    problem = replace(problem, test=replace(problem.test.part(slice(0, rows), 1.0), y=y))
    logits = torch.tensor([3.0, 0.0]).double().expand(rows, 1, 2)
    passed, detail = verdicts(problem, logits)[CLASS_CHECK_TITLE]
    assert passed is None
    assert "10 test labels" in detail


def test_probabilities_as_logits_fail():
    problem = classes()
    f = perfect_logits(problem)
    assert verdicts(problem, f)[LOGITS] == (True, "-1 … 3")
    assert verdicts(problem, f.log_softmax(-1))[LOGITS][0] is True
    for declared in (True, False):
        assert verdicts(problem, f.softmax(-1), declared)[LOGITS][0] is False
        assert verdicts(problem, f.sigmoid(), declared)[LOGITS][0] is declared
    odds = torch.stack([torch.zeros(60, 1), torch.rand(60, 1)], -1).double()
    assert verdicts(classes(n_classes=2), odds)[LOGITS][0] is True  # small log odds


def test_each_of_several_posteriors_is_checked():
    problem = classes()
    bad = torch.tensor([1.0, 5.0, -1.0]).double().expand(60, 1, 3)
    two = Variants({"a": Fixed(perfect_logits(problem)), "b": Fixed(bad)})
    check, _ = class_checks(predict_test_rows(problem, two, Streams(0)), False)
    assert "test rows of b; their" in check.detail
    other = classes(seed=1)
    beside = SupervisedReplicates([problem, other])
    check, _ = class_checks(
        predict_test_rows(beside, [Fixed(perfect_logits(problem)), Fixed(bad)], Streams(0)), False
    )
    assert "test rows of replicate 2; their" in check.detail


def test_other_problems_have_no_class_checks():
    assert (
        class_checks(predict_test_rows(real(), Fixed(torch.zeros(40, 2, 1)), Streams(0)), False)
        == []
    )
    assert class_checks(predict_test_rows(SimpleNamespace(), None, Streams(0)), False) == []


@pytest.mark.parametrize(("last", "passed"), [("none", True), ("one", False)])
def test_run_reports_one_class_predictions(make_job, last, passed):
    """The last layer of the trained network is zero except for a bias."""
    victim = {"none": "Victim", "one": "OneClass"}[last]
    words = [
        "dataset=two_moons",
        "dataset.n_train=100",
        "dataset.n_test=50",
        "plugins=[own_victims]",
        "model=module",
        f"model.class_path=own_victims:{victim}",
        "model.arguments={inputs: 2, n_outputs: 2}",
        "inference=map",
        "inference.lr=0.05",
        "steps=30",
    ]
    job = make_job(*words)
    run(job)
    checks = {check["check"]: check["passed"] for check in read(job.folder)["checks"]["0"]}
    assert checks[CLASS_CHECK_TITLE] is passed
    assert checks[LOGITS] is True


class OfProbabilities:
    """A plug-in's log joint with probabilities in its predictive."""

    dim = 3
    names = []

    def constrain(self, theta):
        return theta

    def sample_prior(self, n, generator):
        return torch.randn(n, 3, generator=generator)

    def log_likelihood(self, theta, batch):
        return theta.sum(1, keepdim=True).expand(-1, len(batch.x))

    def log_prior(self, theta):
        return -theta.square().sum(1)

    def predictive(self, theta, x):
        return Categorical(theta.softmax(1)[:, None, None].expand(-1, len(x), 1, 3))


class OfLogits(OfProbabilities):
    def predictive(self, theta, x):
        return Categorical(theta[:, None, None].expand(-1, len(x), 1, 3))


class NotYet(OfProbabilities):
    def predictive(self, theta, x):
        raise RuntimeError("not fitted")


def test_plugin_model_is_examined_before_training():
    with pytest.raises(
        ConfigMismatchError,
        match=r"model=mine: .*; pass their logarithms",
    ):
        examine_model(OfProbabilities(), classes(), "model=mine")
    for model in (OfLogits(), NotYet(), object()):
        examine_model(model, classes(), "model=mine")
    examine_model(OfProbabilities(), real(), "model=mine")


@pytest.mark.parametrize("name", ["mlp", "gp_classifier"])
def test_own_models_pass_examination(name):
    problem = classes()
    examine_model(component("model", name).build(problem, Streams(0)), problem, f"model={name}")
