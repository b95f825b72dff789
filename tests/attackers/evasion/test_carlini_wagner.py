"""Carlini and Wagner's attack: literal steps, margin, and search over the price."""

import math

import pytest
import torch
from support.runs.configured import F64, component, generator
from support.small.small_victims import (
    UNIT,
    find_broken,
    images,
    make_linear,
    make_victim,
    perturb,
)
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.criteria import margins


def descend(attacker, model, x, y, price, bounds=None, eps=0.0):
    """Nearest adversarial inputs, their distances, and the last inputs at a fixed price."""
    price = torch.full((len(x),), price, dtype=F64) if isinstance(price, float) else price
    return attacker._descend(Attacked(model, bounds), x, y, price, generator(), eps)


@pytest.mark.parametrize("kappa", [0.0, 0.8])
def test_carlini_wagner_steps_match_literal_adam(kappa):
    """Two Adam steps on ‖x'(w) − x‖² + c max(Z_y − max Z_i, −κ), differentiated by autograd."""
    model, x, y = make_victim(12)
    y[6:] = (y[6:] + 1) % 3  # already misclassified: only κ > 0 requires a larger margin
    keys = {"lr": 0.05, "c": 0.7, "shrink": 0.999, "kappa": kappa}
    attacker = component("attacker", "cw", searches=1, steps=2, **keys)
    last = descend(attacker, model, x, y, 0.7, UNIT)[2]
    w = torch.atanh(0.999 * (2 * x - 1)).requires_grad_(True)
    adam = torch.optim.Adam([w], lr=0.05)
    for _ in range(2):
        adam.zero_grad()
        x_adv = (w.tanh() + 1) / 2
        f = model.predict(x_adv, generator()).logits[0, :, 0]
        label_logit = f.gather(1, y)[:, 0]
        rest = f.scatter(1, y, -torch.inf).amax(1)
        ((x_adv - x).square().sum() + 0.7 * (label_logit - rest).clamp_min(-kappa).sum()).backward()
        adam.step()
    assert_close(last, (w.detach().tanh() + 1) / 2)


@pytest.mark.parametrize("target", [None, 1])
def test_carlini_wagner_success_has_margin_kappa(target):
    """The shortest perturbation found with κ has the margin, and is longer than without κ."""
    model, x, y = make_victim(30)
    labels = y if target is None else torch.full_like(y, target)
    length = {}
    for kappa in (0.0, 0.6):
        attacker = component("attacker", "cw", steps=60, lr=0.05, kappa=kappa, target=target)
        nearest, length[kappa], _ = descend(attacker, model, x, labels, 20.0, UNIT)
        won = length[kappa].isfinite()
        assert won.sum() > 20
        margin = margins(model.predict(nearest[won], generator()), labels[won])
        assert (margin if target is None else -margin).max() <= -kappa
    longer = length[0.6] - length[0.0]
    assert longer[longer.isfinite()].mean() > 0.01


def test_price_search_matches_literal_algorithm():
    """Row by row: after a success the price moves halfway to the last failure (or 0); without any
    success it grows tenfold."""
    model, x, y = make_victim(9)
    keys = {"searches": 5, "steps": 15, "lr": 0.05, "c": 0.6}
    attacker = component("attacker", "cw", **keys)
    eps = 1e-3  # below every length: no row stops early, and only the direction remains
    ours = perturb("cw", model, x, y, eps, bounds=None, **keys)
    failed = 0
    for b in range(len(x)):
        low = 0.0
        high = math.inf
        c = 0.6
        shortest = math.inf
        best = x[b]
        row = slice(b, b + 1)
        for _ in range(5):
            nearest, length, last = descend(attacker, model, x[row], y[row], c, eps=eps)
            if length < math.inf:
                high = min(high, c)
                best = nearest[0] if length < shortest else best
            else:
                low = max(low, c)
                failed += 1
                best = last[0] if shortest == math.inf else best
            shortest = min(shortest, float(length))
            c = 10 * c if high == math.inf else (low + high) / 2
        assert_close(ours[b], x[b] + eps * (best - x[b]) / (best - x[b]).norm())
    assert 0 < failed < 5 * len(x)


@pytest.mark.slow
def test_price_search_nears_shortest_perturbation():
    """On a linear classifier without bounds the shortest perturbation is the distance to the
    nearest plane."""
    model = make_linear()
    x, y = images(model, 20)
    plane = perturb("deepfool", model, x, y, 1e6, bounds=None, norm="l2", overshoot=0.0)
    exact = (plane - x).norm(dim=1)
    keys = {"searches": 12, "steps": 300, "lr": 0.01}
    attacker = component("attacker", "cw", **keys)
    c = torch.ones(20, dtype=F64)
    low = 0 * c
    length = torch.inf * c
    high = torch.inf * c
    for _ in range(12):  # the search alone, without a ball at which it would stop
        now = descend(attacker, model, x, y, c)[1]
        high = torch.where(now.isfinite(), torch.minimum(high, c), high)
        low = torch.where(now.isfinite(), low, torch.maximum(low, c))
        c = torch.where(high.isinf(), 10 * c, (low + high) / 2)
        length = torch.minimum(length, now)
    assert (length >= exact * (1 - 1e-6)).all()
    assert (length / exact).mean() < 1.05
    median = float(length.median())
    inside = perturb("cw", model, x, y, 1.05 * median, bounds=None, **keys)
    assert (find_broken(model, inside, y) >= (length <= 1.05 * median)).all()
