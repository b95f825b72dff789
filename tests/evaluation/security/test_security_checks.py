"""The sanity checks of a security evaluation: all pass for a correct victim, and each fails for a
victim with the matching fault."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from support.runs.configured import component, generator, threat
from support.small.small_victims import F64, Spoilt, make_honest, verdicts

from components.attackers.attacked import Attacked
from components.attackers.input_space import BoxSpace
from components.attackers.norms import NORMS
from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError
from components.evaluation.security.checks import half_accuracy_eps
from components.evaluation.security.curves import security_curve
from components.evaluation.security.threat import Threat
from runner.execution.rng import Streams


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.1), ("l2", 0.25), ("l1", 0.6)])
def test_honest_victim_passes_every_check(norm, eps):
    model, problem = make_honest()
    checks = verdicts(model, problem, norm, eps)
    assert all(checks.values()), checks
    assert len(checks) == (9 if norm == "linf" else 8)


WEAK = "a white box is not weaker than a black box"
CHANCE = "an unbounded attack reaches chance"


@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        (
            "wrong sign",
            {"noise is weaker than the gradient", "the loss rises during the attack", WEAK, CHANCE},
        ),
        ("silent", {"the gradient is not zero", WEAK, CHANCE}),
        ("random", {WEAK}),
    ],
)
def test_wrong_gradients_are_detected(fault, failing):
    model, problem = make_honest()
    checks = verdicts(Spoilt(model, fault), problem)
    assert failing <= {name for name, passed in checks.items() if not passed}, checks


def test_attack_with_too_small_steps_is_detected():
    model, problem = make_honest()
    weak = component("attacker", "bim", steps=10, step_size=0.001)
    assert not verdicts(model, problem, attacker=weak)[
        "the attack, of several steps, is not weaker than one step"
    ]


def test_victim_without_gradient_is_judged_by_its_curve():
    model, problem = make_honest()

    class Forest:
        def predict(self, x, g):
            return Categorical(model.predict(x, g).logits.detach())

    assert verdicts(Forest(), problem, attacker=component("attacker", "random_noise")) == {}
    attacker = component("attacker", "square", queries=40)
    curve = security_curve(problem, Forest(), attacker, threat(attacker), Streams(0))
    assert curve.verdict, curve.checks


@pytest.mark.parametrize("rough", [False, True])
def test_worst_case_matches_counts(rough):
    """A label counts as correct at ε if it is correct for the clean input, under noise, and under
    attacks of every size up to ε."""
    model, problem = make_honest()
    if rough:  # labels that a small attack breaks and a larger one overshoots: they stay broken
        model.w = 16 * model.w
        problem.test = replace(problem.test, y=model.predict(problem.test.x, generator()).guess)
    attacker = component("attacker", "fgsm")
    sizes = threat(attacker, [0.05, 0.1, 0.4])
    rows = security_curve(problem, model, attacker, sizes, Streams(0)).rows
    rng = Streams(0)
    x = problem.test.x
    y = problem.test.y
    right = torch.ones(len(x), dtype=torch.bool)
    for row in rows.to_dict("records"):
        box = BoxSpace((0.0, 1.0), 9)
        g = rng.at("attack", 1)
        noise = box.perturb_at_random(x, y, row["eps"], "linf", g)
        attacked = attacker.perturb(Attacked(model, problem.bounds), x, y, rng, row["eps"])
        for z in (noise, attacked):
            right &= (model.predict(z, generator()).guess == y)[:, 0]
        assert row["worst_case_accuracy"] == right.double().mean()
        assert row["worst_case_accuracy"] <= min(row["accuracy"], row["random_accuracy"])
    now = rows["worst_case_accuracy"] < rows[["accuracy", "random_accuracy"]].min(axis=1) - 0.1
    assert bool(now.iloc[-1]) == rough


def test_attacked_calibration_matches_counts():
    model, problem = make_honest()
    attacker = component("attacker", "fgsm")
    row = security_curve(problem, model, attacker, threat(attacker, [0.1]), Streams(0)).rows.iloc[1]
    x = problem.test.x
    y = problem.test.y
    attacked = attacker.perturb(Attacked(model, problem.bounds), x, y, Streams(0), 0.1)
    confidence, guess = model.predict(attacked, generator()).probs[:, 0].max(1)
    gap = (guess == y[:, 0]).double() - confidence
    bins = (confidence * 15).long().clamp_max(14)
    sums = torch.zeros(15, dtype=F64).index_add(0, bins, gap)
    assert row["ece"] == pytest.approx(float(sums.abs().sum() / len(x)))


def test_half_accuracy_size_is_found():
    rows = pd.DataFrame({"eps": [0.0, 0.1, 0.2, 0.3], "accuracy": [1.0, 0.8, 0.45, 0.0]})
    assert half_accuracy_eps(rows) == 0.2
    assert half_accuracy_eps(rows.iloc[:1]) == 0.0


@pytest.mark.parametrize("norm", NORMS)
def test_control_perturbation_has_full_size(norm):
    x = torch.zeros(50, 7, dtype=F64)
    box = BoxSpace(None, 7)
    y = torch.zeros(50, 1, dtype=torch.long)
    size = box.size(x, box.perturb_at_random(x, y, 0.3, norm, generator()), norm)
    torch.testing.assert_close(size, torch.full_like(size, 0.3))


@pytest.mark.parametrize(("norm", "most"), [("linf", 1.0), ("l2", math.sqrt(9)), ("l1", 9.0)])
def test_sizes_in_wrong_units_are_refused(norm, most):
    model, problem = make_honest()
    pgd, fgsm = (component("attacker", name, norm=norm) for name in ("pgd", "fgsm"))
    with pytest.raises(
        ConfigMismatchError,
        match=r"attacker.eps: 255 .*\[0, 1\].*; give sizes in these units",
    ) as error:
        security_curve(problem, model, pgd, threat(pgd, [0.0, 255.0]), Streams(0))
    assert "\n" not in str(error.value)
    security_curve(problem, model, fgsm, threat(fgsm, [most]), Streams(0))


def test_probabilities_as_logits_are_refused():
    model, problem = make_honest()

    class Probabilities:
        def predict(self, x, g):
            return Categorical(model.predict(x, g).logits.softmax(-1))

    fgsm = component("attacker", "fgsm")
    with pytest.raises(ConfigMismatchError, match=r"they sum to one.*; return their logarithms"):
        security_curve(problem, Probabilities(), fgsm, Threat("linf", (0.1,)), Streams(0))


@pytest.mark.parametrize("norm", NORMS)
def test_infinite_slope_is_excluded_and_fails_check(norm):
    """If the first two inputs are 0, their slopes are infinite or undefined (0 · ∞); the attack
    follows the other slopes."""
    model, problem = make_honest()
    x = problem.test.x.clone()
    x[:30, :2] = 0.0
    problem.test = replace(problem.test, x=x)

    class Roots:
        def predict(self, z, g):
            return model.predict(torch.cat([z[:, :1].sqrt(), 0 * z[:, 1:2].sqrt(), z[:, 2:]], 1), g)

    eps = {"linf": 0.1, "l2": 0.25, "l1": 0.6}[norm]
    for name in ("fgsm", "pgd", "pgd_momentum"):
        attacker = component("attacker", name, norm=norm)
        curve = security_curve(problem, Roots(), attacker, Threat(norm, (eps,)), Streams(0))
        (check,) = (check for check in curve.checks if check.name == "the gradient is finite")
        assert check.passed is False
        assert " of 128 rows; omitted" in check.detail
        assert curve.rows["accuracy"].iloc[-1] < curve.rows["random_accuracy"].iloc[-1]
        assert np.isfinite(curve.rows.select_dtypes("number").to_numpy()).all()
