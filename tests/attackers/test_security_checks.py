"""The sanity checks of a security evaluation: they pass on an honest victim, and each fails on one that deserves it."""

from __future__ import annotations

import math

import pandas as pd
import pytest
import torch
from small_problems import classes, component
from test_evasion_loop import F64, Softmax, generator

from components.attackers.norms import NORMS
from components.attackers.victim import Victim
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.evaluation.security import security_curve
from components.evaluation.security_checks import control, telling_size, victim_checks
from components.trouble import Misfit
from runner.run.rng import Streams


def honest(inputs: int = 9, n_classes: int = 2) -> tuple:
    """A smooth victim, and a problem whose labels are what it says."""
    model = Softmax(inputs=inputs, classes=n_classes, seed=4)
    model.w = 0.5 * model.w
    problem = classes(n=150, n_inputs=inputs, n_classes=n_classes)
    test = problem.test
    problem.test = Batch(test.x, model.predict(test.x, generator()).probs.argmax(-1), test.mask, 1.0)
    problem.image_shape = (3, 3) if inputs == 9 else None
    return model, problem


def verdicts(model, problem, norm: str = "linf", eps: float = 0.1, attacker=None) -> dict[str, bool]:
    attacker = attacker or component("attacker", "pgd", norm=norm)
    victim = Victim(model, problem.bounds, image_shape=problem.image_shape)
    found = victim_checks(attacker, victim, problem, problem.test.y, Streams(0), norm, eps)
    return {name: passed for name, passed, _ in found}


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.1), ("l2", 0.25), ("l1", 0.6)])
def test_an_honest_victim_passes_every_check(norm, eps):
    model, problem = honest()
    found = verdicts(model, problem, norm, eps)
    assert all(found.values()), found
    assert len(found) == (8 if norm == "linf" else 7)


class Spoilt:
    """A victim whose gradient lies while its predictions stay as they are."""

    def __init__(self, model, how):
        self.model, self.how = model, how

    def predict(self, x, g):
        f = self.model.predict(x, g).logits
        if self.how == "wrong sign":
            f = 2 * f.detach() - f
        elif self.how == "silent":
            f = f.detach() + 0 * f
        elif self.how == "random":  # a gradient of another function
            other = torch.sin(40 * x @ torch.randn(x.shape[1], f.shape[-1], generator=generator(1), dtype=F64))[
                None, :, None
            ]
            f = f.detach() + other - other.detach()
        return Categorical(f)


@pytest.mark.parametrize(
    ("how", "failing"),
    [
        (
            "wrong sign",
            {
                "noise is weaker than the gradient",
                "a white box is no weaker than a black box",
                "the loss rises during the attack",
                "an unbounded attack reaches chance",
            },
        ),
        (
            "silent",
            {
                "the gradient is not zero",
                "a white box is no weaker than a black box",
                "an unbounded attack reaches chance",
            },
        ),
        ("random", {"a white box is no weaker than a black box"}),
    ],
)
def test_gradients_that_lie_are_found_out(how, failing):
    model, problem = honest()
    found = verdicts(Spoilt(model, how), problem)
    assert failing <= {name for name, passed in found.items() if not passed}, found


def test_an_attack_of_too_small_steps_is_found_out():
    model, problem = honest()
    weak = component("attacker", "bim", steps=10, step_size=0.001)
    assert not verdicts(model, problem, attacker=weak)["the attack, of several steps, is no weaker than one step"]


def test_a_victim_without_a_gradient_is_judged_by_its_curve_alone():
    model, problem = honest()

    class Forest:
        def predict(self, x, g):
            return Categorical(model.predict(x, g).logits.detach())

    assert verdicts(Forest(), problem, attacker=component("attacker", "random_noise")) == {}
    curve = security_curve(component("attacker", "square", queries=40), Forest(), problem, Streams(0))
    assert curve.verdict, curve.checks.to_string()


def test_the_worst_case_by_counting():
    """A label counts as right at ε if clean, noise and attack of every size up to ε leave it right."""
    model, problem = honest()
    attacker = component("attacker", "fgsm", eps=[0.05, 0.1, 0.4])
    rows = security_curve(attacker, model, problem, Streams(0)).rows
    rng, x, y = Streams(0), problem.test.x, problem.test.y
    right = torch.ones(len(x), dtype=torch.bool)
    for row in rows.to_dict("records"):
        noise = (x + control(x, row["eps"], "linf", rng.at("attack", 1))).clamp(0, 1)
        attacked = attacker.perturb(Victim(model, problem.bounds), x, y, rng, row["eps"])
        for z in (noise, attacked):
            right &= (model.predict(z, generator()).probs.argmax(-1) == y)[:, 0]
        assert row["worst_case_accuracy"] == float(right.double().mean())
        assert row["worst_case_accuracy"] <= min(row["accuracy"], row["random_accuracy"])


def test_calibration_under_attack_by_counting():
    model, problem = honest()
    attacker = component("attacker", "fgsm", eps=[0.1])
    row = security_curve(attacker, model, problem, Streams(0)).rows.iloc[1]
    x, y = problem.test.x, problem.test.y
    p = model.predict(attacker.perturb(Victim(model, problem.bounds), x, y, Streams(0), 0.1), generator()).probs[:, 0]
    total = 0.0
    for b in range(15):
        rows = [i for i in range(len(x)) if min(int(float(p[i].max()) * 15), 14) == b]
        if rows:
            accuracy = sum(int(p[i].argmax()) == int(y[i]) for i in rows) / len(rows)
            confidence = sum(float(p[i].max()) for i in rows) / len(rows)
            total += len(rows) / len(x) * abs(accuracy - confidence)
    assert row["ece"] == pytest.approx(total)


def test_the_telling_size_is_where_half_is_left():
    rows = pd.DataFrame({"eps": [0.0, 0.1, 0.2, 0.3], "accuracy": [1.0, 0.8, 0.45, 0.0]})
    assert telling_size(rows) == 0.2
    assert telling_size(rows.iloc[:1]) == 0.0


@pytest.mark.parametrize("norm", NORMS)
def test_the_control_is_as_long_as_the_attack_may_be(norm):
    x = torch.zeros(50, 7, dtype=F64)
    size = NORMS[norm].size(control(x, 0.3, norm, generator()))
    torch.testing.assert_close(size, torch.full_like(size, 0.3))


@pytest.mark.parametrize(("norm", "most"), [("linf", 1.0), ("l2", math.sqrt(9)), ("l1", 9.0)])
def test_sizes_in_other_units_are_refused_in_one_line(norm, most):
    model, problem = honest()
    with pytest.raises(Misfit, match=r"attacker.eps: 255 leads from any input of small .* \[0, 1\]") as error:
        security_curve(component("attacker", "pgd", norm=norm, eps=[0.0, 255.0]), model, problem, Streams(0))
    assert "\n" not in str(error.value)
    security_curve(component("attacker", "fgsm", norm=norm, eps=[most]), model, problem, Streams(0))


def test_probabilities_in_the_place_of_logits_are_refused():
    model, problem = honest()

    class Probabilities:
        def predict(self, x, g):
            return Categorical(model.predict(x, g).logits.softmax(-1))

    with pytest.raises(Misfit, match="they sum to one"):
        security_curve(component("attacker", "fgsm"), Probabilities(), problem, Streams(0))
