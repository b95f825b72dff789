"""Costs of an attack: predicted rows of the victim, and rows of gradients."""

import pytest
import torch
from support.runs.configured import component, threat
from support.small.small_problems import classes, fit_mlp

from components.attackers.attacked import Attacked
from components.contracts.costs.counts import Costs, counting
from components.contracts.costs.queries import Queries, count_queries, counting_queries
from components.evaluation.assess import assess_security
from runner.execution.rng import Streams

SIZES = [0.05, 0.1, 0.25]


class Tallied:
    """A classifier with its own counters: rows of calls, and rows of derivatives with respect to
    its input."""

    def __init__(self, posterior):
        self.posterior = posterior
        self.forwards = 0
        self.gradients = 0

    def predict(self, x, generator):
        self.forwards += len(x)
        if x.requires_grad:

            def add(_):
                self.gradients += len(x)

            x.register_hook(add)
        return self.posterior.predict(x, generator)


@pytest.fixture(scope="module")
def train_classifier():
    problem = classes(n=120, n_inputs=16)
    problem.image_shape = (4, 4)
    return problem, *fit_mlp(problem, [8], 100, lr=0.01)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("fgsm", {}),
        ("pgd", {"steps": 5, "restarts": 2}),
        ("pgd", {"steps": 5, "stop_when_broken": False}),
        ("apgd", {"steps": 5, "criterion": "margin"}),
        ("fab", {"steps": 3}),
        ("deepfool", {"steps": 4}),
        ("cw", {"steps": 3, "searches": 2}),
        ("square", {"queries": 20}),
        ("random_noise", {"repeats": 3}),
    ],
)
def test_counts_match_classifier_calls(train_classifier, name, keys):
    problem, posterior, _ = train_classifier
    tallied = Tallied(posterior)
    queries = Queries()
    attacker = component("attacker", name, **keys)
    victim = Attacked(tallied, problem.bounds, image_shape=problem.image_shape)
    with counting_queries(queries), torch.no_grad():
        attacker.perturb(victim, problem.test.x, problem.test.y, Streams(0), 0.1)
    assert (queries.forwards, queries.gradients) == (tallied.forwards, tallied.gradients)
    assert bool(queries.gradients) == attacker.follows_gradient


def test_security_costs_count_one_gradient_per_row(train_classifier):
    """One gradient for each test row at each size above 0; checks of the attack are not counted,
    and the costs of training do not change."""
    problem, posterior, rng = train_classifier
    fgsm = component("attacker", "fgsm")
    training = Costs()
    with counting(training):
        report = assess_security(problem, posterior, fgsm, threat(fgsm, [0.0, *SIZES]), rng, False)
    rows = len(SIZES) * len(problem.test.x)
    assert report.costs["cost/attack_gradients"] == rows
    assert report.costs["cost/attack_forwards"] == rows
    assert report.costs["cost/attack_cpu_seconds"] > 0
    assert not any(name.startswith("cost/") for name in report.scores)
    assert training.gradients == 0
    count_queries(forwards=3)  # no counts outside an attack


def test_mean_certified_accuracy_excludes_size_0(train_classifier):
    problem, posterior, rng = train_classifier
    fgsm = component("attacker", "fgsm")
    sizes = [0.0, 0.001, 0.01, 0.05]
    scores = assess_security(problem, posterior, fgsm, threat(fgsm, sizes), rng, False).scores
    each = [value for name, value in scores.items() if name.startswith("certified_accuracy/")]
    assert len(each) == 3
    assert scores["mean_certified_accuracy"] == pytest.approx(sum(each) / 3)
    assert 0 < scores["mean_certified_accuracy"] < 1
