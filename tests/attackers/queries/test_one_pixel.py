"""The one-pixel attack compared with every pixel and value, and its literal evolution."""

import pytest
import torch
from support.runs.configured import component, double, draw_uniform, generator, load, normal
from support.small.small_victims import F64, Softmax

from components.attackers.attacked import Attacked
from components.attackers.queries.one_pixel import Image, distinct, paint
from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError
from runner.execution.rng import Streams

UNIT = (0.0, 1.0)


class Linear:
    """Logits W x + b: log p(y|x) is concave in a pixel, so that its minimum is at an end of the
    range."""

    def __init__(self, inputs=6, classes=3, scale=2.0):
        g = generator(3)
        self.w = scale * normal(g, classes, inputs)
        # almost balanced at the middle of the inputs
        self.b = -self.w.sum(1) / 2 + double([5.0, 0.0, -2.0])

    def predict(self, x, g):
        return Categorical((x @ self.w.T + self.b)[None, :, None])


def victim(model, shape=(2, 3)):
    return Attacked(model, UNIT, "predictive", shape)


def ends(x, eps, pixels):
    """All inputs that differ from a row in a given number of pixels, each at an end of its
    range."""
    out = [x]
    for _ in range(pixels):
        more = []
        for z in out:
            for i in range(len(x)):
                for end in (max(0.0, float(x[i]) - eps), min(1.0, float(x[i]) + eps)):
                    changed = z.clone()
                    changed[i] = end
                    more.append(changed)
        out = [*out, *more]
    return torch.stack(out)


@pytest.mark.parametrize(("pixels", "eps"), [(1, 1.0), (1, 0.3), (2, 1.0)])
def test_one_pixel_matches_enumeration(pixels, eps):
    """f_c − f_y is linear in a pixel: rows are broken exactly where pixels at an end of their range
    break them, and the others have the smallest possible log p(y|x')."""
    model = Linear()
    x = draw_uniform(25, 6, seed=1)
    y = model.predict(x, None).guess
    attack = component("attacker", "one_pixel", pixels=pixels, population=80, generations=40)
    x_adv = attack.perturb(victim(model), x, y, Streams(0), eps)
    assert ((x_adv != x).sum(1) <= pixels).all()
    broken = model.predict(x_adv, None).guess != y
    value = model.predict(x_adv, None).log_prob(y)
    every = [ends(row, eps, pixels) for row in x]
    for b, corners in enumerate(every):
        answers = model.predict(corners, None)
        breaks = bool((answers.guess != y[b]).any())
        assert bool(broken[b]) == breaks
        if not breaks:
            least = float(answers.log_prob(y[b].expand(len(corners), 1)).min())
            assert float(value[b]) == pytest.approx(least, abs=1e-9)
    assert broken.any()
    assert pixels > 1 or not broken.all()


def test_target_is_reached_if_any_pixel_reaches_it():
    model = Linear()
    x = draw_uniform(25, 6, seed=1)
    attack = component("attacker", "one_pixel", population=80, generations=40, target=1)
    y = model.predict(x, None).guess
    x_adv = attack.perturb(victim(model), x, y, Streams(0), 1.0)
    reached = model.predict(x_adv, None).guess[:, 0] == 1
    levels = torch.linspace(0, 1, 101, dtype=F64)
    changed = x[:, None, None].repeat(1, 6, 101, 1)
    for i in range(6):
        changed[:, i, :, i] = levels
    possible = (model.predict(changed.flatten(0, 2), None).guess == 1).view(25, -1).any(1)
    assert (reached | ~possible).all()
    assert (reached & ~possible).sum() <= 1  # between two levels of the grid
    assert 0 < possible.sum() < 25


def test_pixels_match_literal_painting():
    """Three channels: floor(row), floor(column), and a value for each channel within ε of the
    pixel's own."""
    x = draw_uniform(2, 3 * 2 * 4)
    members = torch.tensor([[[[1.7, 3.2, 0.9, -0.4, 0.5]]], [[[0.0, 0.5, 2.0, 0.1, 0.3]]]]).double()
    images = paint(x, members, Image(3, 2, 4, UNIT), 0.25)[:, 0].view(2, 3, 2, 4)
    expected = x.view(2, 3, 2, 4).clone()
    for b, (r, c) in enumerate(((1, 3), (0, 0))):
        for channel in range(3):
            old = float(expected[b, channel, r, c])
            value = float(members[b, 0, 0, 2 + channel])
            expected[b, channel, r, c] = min(max(value, old - 0.25), old + 0.25)
    assert torch.equal(images, expected)


def test_parents_are_uniform_distinct_triples():
    three = distinct(2000, 5, generator(), torch.device("cpu"))
    a, b, c = three
    assert not ((a == b) | (b == c) | (a == c)).any()
    for member in (a, b, c):
        counts = torch.bincount(member.flatten(), minlength=5)
        assert (counts - 2000).abs().max() < 4 * 40


def test_broken_rows_are_not_queried():
    model = Softmax()
    x = draw_uniform(4, 6, seed=1)
    y = (model.predict(x, generator()).guess + 1) % 3
    model.calls = 0
    attack = component("attacker", "one_pixel", population=50, generations=9)
    assert torch.equal(attack.perturb(victim(model), x, y, Streams(0), 1.0), x)
    assert model.calls == 4


def test_inputs_without_bounds_are_refused():
    problem, _ = load("two_moons")
    attack = component("attacker", "one_pixel")
    with pytest.raises(ConfigMismatchError, match=r"use inference\.attacker=square"):
        attack.check_target(problem, "inference.attacker")  # before a run
