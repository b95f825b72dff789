"""Certified rows, compared with all possible emails, grids of inputs and adaptive attacks."""

import pytest
import torch
from support.runs.configured import F64, component, threat
from support.small.small_nets import random_network
from support.small.small_problems import classes, fit_mlp
from support.small.small_spam import fit_estimator, neighbours, rows, words

from components.attackers.norms import NORMS
from components.contracts.capabilities.margins import MarginBounds
from components.evaluation.security.certificate import certify
from components.evaluation.security.curves import security_curve
from components.posteriors.particles import Particles
from components.posteriors.point_estimate import PointEstimate
from runner.execution.rng import Streams


def test_certified_rows_match_grid():
    """D = 2: a grid over the ball breaks no certified row of a network or mixture, and for small
    balls most unbroken rows are certified."""
    problem = classes(n=60, n_inputs=2, n_classes=3)
    y = problem.test.y
    model = random_network(problem, widths=[5])
    thetas = torch.stack([random_network(problem, seed, widths=[5]).theta for seed in range(3)])
    side = torch.linspace(-1, 1, 21, dtype=F64)
    grid = torch.stack(torch.meshgrid(side, side, indexing="ij"), -1).flatten(0, 1)
    for posterior in (PointEstimate(model), Particles(model, thetas)):
        for eps in (0.002, 0.05, 0.2):
            x = (problem.test.x + eps * grid[:, None]).clamp(0, 1)
            answers = posterior.predict(x.flatten(0, 1), Streams(0).evaluation)
            stands = (answers.guess.unflatten(0, (len(grid), -1)) == y).all(0)
            certificate = certify(problem, posterior, y, "linf", eps, Streams(0))
            assert certificate.method == "interval bounds"
            assert not (certificate.rows & ~stands).any()
            if eps == 0.002:
                assert certificate.rows.sum() >= 0.9 * stands.sum() > 10


@pytest.mark.parametrize("direction", ["insertion", "flip"])
@pytest.mark.parametrize("model", ["naive_bayes", "logistic_lasso", "mlp"])
def test_certified_mails_match_enumeration(model, direction):
    """An email is certified exactly if no set of changes breaks it, up to two words, or more for
    linear logits; for a network with more words, only unbroken emails are certified."""
    problem = words(n=60, n_words=6)
    y = problem.test.y
    if model == "mlp":
        net = random_network(problem, widths=[6])
        posterior = Particles(net, torch.stack([net.theta, 0.9 * net.theta]))
    else:
        posterior = fit_estimator(problem, model)
    for eps in (0, 1, 2, 4):
        stands = []
        for row, label in zip(rows(problem.test.x), y[:, 0].tolist(), strict=True):
            every = torch.tensor(neighbours(row, eps, direction) if label else [row]).double()
            stands.append(
                bool((posterior.predict(every, Streams(0).evaluation).guess == label).all())
            )
        certificate = certify(problem, posterior, y, direction, eps, Streams(0))
        if eps > 0:
            smaller = certify(problem, posterior, y, direction, eps - 1, Streams(0))
            repeat = certify(problem, posterior, y, direction, eps, Streams(0), smaller)
            assert torch.equal(repeat.rows, certificate.rows)
        assert certificate.method == ("enumeration" if eps <= 2 else "interval bounds")
        if eps <= 2 or model != "mlp":
            assert certificate.rows[:, 0].tolist() == stands
        else:
            assert not (certificate.rows[:, 0] & ~torch.tensor(stands)).any()


@pytest.mark.parametrize("measure", NORMS)
def test_certified_accuracy_is_below_adaptive_accuracy(measure):
    """The curve of a trained network, an ensemble and adaptive attacks of every norm."""
    problem = classes(n=120, n_inputs=6)
    posterior, rng = fit_mlp(problem, [8], 120, "deep_ensemble", members=2, lr=0.02)
    attack = component("attacker", "apgd", norm=measure, steps=5)
    sizes = [0.01, 0.05, 0.2]
    curve = security_curve(problem, posterior, attack, threat(attack, sizes), rng)
    table = curve.rows
    assert (table["certified_accuracy"] <= table["accuracy"]).all()
    assert (table["certified_accuracy"] <= table["worst_case_accuracy"]).all()
    gap = table["accuracy"] - table["certified_accuracy"]
    assert table["certificate_gap"].tolist() == gap.tolist()
    assert table["certified_accuracy"].iloc[0] == table["accuracy"].iloc[0]
    assert table["certified_accuracy"].iloc[1] > 0.5
    assert ("no certified label is broken", True) in [check[:2] for check in curve.checks]


def test_false_certificate_fails_its_check(monkeypatch):
    problem = classes(n=60, n_inputs=6)
    posterior, rng = fit_mlp(problem, [8], 80, lr=0.02)
    attack = component("attacker", "fgsm")
    monkeypatch.setattr(
        MarginBounds, "certified", lambda bounds: torch.ones_like(bounds.low[0, ..., 0]).bool()
    )
    curve = security_curve(problem, posterior, attack, threat(attack, [0.2]), rng)
    assert ("no certified label is broken", False) in [check[:2] for check in curve.checks]
    assert not curve.verdict
