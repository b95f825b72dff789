"""Losses of decisions about held-out labels, compared with literal sums and brute force over
actions."""

import math

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import F64, double, generator, normal, uniform
from support.small import small_problems
from torch.testing import assert_close

from components.contracts.predictive import Categorical, GaussianMixture
from components.errors import ConfigMismatchError
from components.evaluation.decision import DecisionKeys, add_decision, decide, scores
from components.posteriors.decisions import ToleranceLoss
from runner.errors import ConfigError

COSTS = [[0.0, 1.0], [10.0, 0.0], [0.4, 0.4]]  # the third action asks an expert


def keys(loss, **changes):
    return DecisionKeys(**({"loss": loss, "costs": COSTS, "level": 0.8, "radius": 0.6} | changes))


def classes():
    g = generator(0)
    logits = 3 * normal(g, 4, 30, 1, 2)
    y = torch.randint(0, 2, (30, 1), generator=g)
    mask = torch.rand(30, 1, generator=g) < 0.8
    return Categorical(logits), torch.where(mask, y, -1), mask


def reals(n=12):
    g = generator(1)
    mu = 2 * normal(g, 3, n, 2)
    y = normal(g, n, 2)
    mask = torch.rand(n, 2, generator=g) < 0.8
    return GaussianMixture(mu, 0.1 + uniform(g, 3, n, 2)), y, mask


def test_class_costs_are_sums_over_labelled_rows():
    predictive, y, mask = classes()
    costs = double(COSTS)
    p = predictive.probs[mask]
    labels = y[mask]
    expected, action = (p @ costs.T).min(1)
    literal = {
        "decision_loss": costs[action, labels],
        "decision_expected_loss": expected,
        "decision_loss_plain": costs[p.argmax(1), labels],
    }
    out = scores(keys("costs"), predictive, y, mask, [])
    for name, losses in literal.items():
        assert out[name] == pytest.approx(float(losses.mean()))
    actions = decide(keys("costs"), predictive, y).action
    assert {0, 2} <= set(actions.flatten().tolist())


def literal_loss(loss, a, s):
    if loss == "pinball":
        return torch.where(s > a, 0.8 * (s - a), 0.2 * (a - s))
    return {
        "squared": (s - a) ** 2,
        "absolute": (s - a).abs(),
        "tolerance": ((s - a).abs() > 0.6).to(s),
    }[loss]


@pytest.mark.parametrize("loss", ["squared", "absolute", "pinball", "tolerance"])
def test_action_minimises_expected_loss_on_grid(loss):
    predictive, y, mask = reals()
    decided = decide(keys(loss), predictive, y)
    s = torch.linspace(-14, 14, 2801, dtype=F64)  # [K]
    density = torch.stack([predictive.log_prob(v.expand(12, 2)).exp() for v in s])
    best = torch.full_like(y, math.inf)
    for a in torch.linspace(-6, 6, 241, dtype=F64):
        each = literal_loss(loss, a, s)[:, None, None] * density
        best = torch.minimum(best, torch.trapezoid(each, s, dim=0))
    tolerance = 0.01 if loss == "tolerance" else 1e-4  # the step of a 0-1 loss between two s
    assert (decided.expected <= best + tolerance).all()
    assert (decided.expected >= best - 0.02).all()  # up to the resolution of the grid
    assert_close(decided.realised, literal_loss(loss, decided.action, y))
    assert_close(decided.plain, literal_loss(loss, predictive.mean, y))
    out = scores(keys(loss), predictive, y, mask, ["a", "b"])
    by_task = [float(decided.realised[mask[:, t], t].mean()) for t in range(2)]
    assert [out["decision_loss/a"], out["decision_loss/b"]] == pytest.approx(by_task)
    assert out["decision_loss"] == pytest.approx(sum(by_task) / 2)


def test_tolerance_action_covers_most_mass():
    predictive = GaussianMixture(
        double([-3.0, 3.0, 3.1])[:, None, None],
        torch.full((3, 1, 1), 0.2, dtype=F64),
    )
    action = ToleranceLoss(0.5).act(predictive)
    assert float(action) == pytest.approx(3.05, abs=0.01)
    law = GaussianMixture(torch.ones(1, 1, 1, dtype=F64), torch.ones(1, 1, 1, dtype=F64))
    assert float(ToleranceLoss(1.0).act(law)) == pytest.approx(1)
    assert float(ToleranceLoss(1.0).expected_loss(law.mean, law)) == pytest.approx(
        math.erfc(1 / math.sqrt(2))
    )


def test_expected_loss_matches_realised_loss():
    """A broken variant, the transposed cost matrix, costs more."""
    g = generator(2)
    logits = normal(g, 1, 20_000, 1, 2)
    predictive = Categorical(logits)
    y = (uniform(g, 20_000, 1) < predictive.probs[..., 1]).long()
    mask = torch.ones_like(y, dtype=torch.bool)
    out = scores(keys("costs"), predictive, y, mask, [])
    decided = decide(keys("costs"), predictive, y)
    error = float(decided.realised.std()) / 20_000**0.5
    assert abs(out["decision_loss"] - out["decision_expected_loss"]) < 4 * error
    assert out["decision_loss"] < out["decision_loss_plain"] - 4 * error
    transposed = decide(keys("costs", costs=[[0.0, 10.0], [1.0, 0.0]]), predictive, y).action
    paid = double(COSTS)[transposed, y].mean()
    assert float(paid) > out["decision_loss"] + 4 * error
    sure = scores(keys("costs"), Categorical(5 * logits), y, mask, [])
    assert sure["decision_expected_loss"] < sure["decision_loss"] - 4 * error


def test_wrong_keys_are_refused():
    for costs in ([[0.0, 1.0], [1.0]], [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]], [[0.0], [1.0]]):
        with pytest.raises(ValidationError, match=r"costs: .* a row for each action"):
            keys("costs", costs=costs)
    problem = small_problems.classes(n=12, n_inputs=2, n_classes=2)
    with pytest.raises(
        ConfigMismatchError, match=r"decision\.costs: 3 columns, but .* 2 classes; give one column"
    ):
        add_decision(problem, keys("costs", costs=[[0.0, 1.0, 1.0]] * 3))
    assert add_decision(problem, keys("costs")).decision is not None


def test_loss_for_other_labels_is_refused(make_job):
    run = ["dataset=diabetes", "model=linear_regression", "inference=conjugate_bayes", "steps=1"]
    with pytest.raises(
        ConfigError, match=r"decision\.loss=costs: requires classes, which dataset=diab"
    ):
        make_job(*run, "decision.loss=costs")
    assert make_job(*run).decision is None
    assert make_job(*run, "decision.loss=absolute").decision.loss == "absolute"
