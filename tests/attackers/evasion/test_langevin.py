"""Langevin samples of attacks: literal eq. (3.14), and the distributions of their uncertain
numbers."""

import pytest
import torch
from support.runs.configured import F64, component, generator, normal
from support.small.small_victims import UNIT, make_rng, make_victim, perturb
from torch.testing import assert_close

from components.attackers.attacked import Attacked


def test_langevin_steps_match_equation():
    """(3.14) row by row, with the same uncertain numbers in the same order."""
    eps = 0.3
    model, x, y = make_victim(10)
    attacker = component("attacker", "sgld_attack", steps=4.0, temperature=0.01, margin=0.5)
    ours = attacker.perturb(Attacked(model, UNIT), x, y, make_rng(3), eps)
    g = generator(3)
    number, alpha, margin = attacker.draw(x, g, eps)
    assert 0 < margin.sum() < 10
    iterate = x.clone()
    for t in range(int(number.max())):
        z = normal(g, x.shape)
        for b in range(len(x)):
            if t >= number[b]:
                continue
            leaf = iterate[b : b + 1].clone().requires_grad_(True)
            log_p = model.predict(leaf, generator()).logits[0, 0, 0].log_softmax(0)
            label = int(y[b])
            objective = log_p[label]
            if margin[b]:
                objective = log_p[label] - max(log_p[k] for k in range(3) if k != label)
            (gradient,) = torch.autograd.grad(objective, leaf)
            a = float(alpha[b])
            x_adv = iterate[b] - a * gradient[0].sign() + (2 * a * 0.01) ** 0.5 * z[b]
            iterate[b] = x_adv.clamp(x[b] - eps, x[b] + eps).clamp(0, 1)
    assert_close(ours, iterate)


def test_uncertain_numbers_have_expected_moments():
    attacker = component(
        "attacker", "sgld_attack", steps=6.0, step_size=0.4, beta_a=2.0, beta_b=3.0, margin=0.3
    )
    n = 20_000
    eps = 0.5
    number, alpha, margin = attacker.draw(torch.zeros(n, 1, dtype=F64), generator(), eps)
    beta = alpha / (0.4 * eps)
    assert beta.max() <= 1
    a = 2.0
    b = 3.0
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    for values, mean, var in [
        (number, 6.0, 6.0),
        (beta, a / (a + b), variance),
        (margin.double(), 0.3, 0.21),
    ]:
        assert values.mean() == pytest.approx(mean, abs=4 * (var / n) ** 0.5)
        assert values.var() == pytest.approx(var, rel=0.05)


@pytest.mark.parametrize("project", [True, False])
def test_projection_keeps_samples_in_ball(project):
    model, x, y = make_victim()
    keys = {"temperature": 1.0, "project": project}
    x_adv = perturb("sgld_attack", model, x, y, 0.1, bounds=None, **keys)
    assert ((x_adv - x).abs().max() <= 0.1 + 1e-12) == project
