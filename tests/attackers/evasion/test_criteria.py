"""Criteria of gradient attacks: equations and properties."""

import itertools

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator
from support.small.small_victims import UNIT, make_victim
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.criteria import (
    CRITERIA,
    SPREAD,
    certainty,
    log_likelihood,
    log_likelihood_logit_gradient,
)
from components.attackers.evasion.loop import Ascent, ascend
from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError


def test_dlr_matches_equation():
    """DLR(x, y) = −(z_y − max_{i≠y} z_i)/(z_π1 − z_π3), Croce and Hein (2020), eq. (6), of one
    network's own logits."""
    logits = draw_normal(30, 5)
    y = torch.randint(5, (30, 1), generator=generator(1))
    ours = CRITERIA["dlr"](Categorical(logits[None, :, None]), y)
    first, _, third, *_ = logits.sort(1, descending=True)[0].T
    others = logits.scatter(1, y, -torch.inf).amax(1)
    assert_close(ours, (logits.gather(1, y)[:, 0] - others) / (first - third))


def test_criteria_combine_tasks_and_skip_missing_labels():
    """The margin z_y − max_{i≠y} z_i and the ratio are minima over the labelled tasks, and log p is
    their sum; unlabelled rows have 0."""
    logits = draw_normal(1, 6, 2, 4, seed=4)
    y = torch.randint(4, (6, 2), generator=generator(5))
    y[0, 1] = y[1, 0] = -1
    y[2] = -1
    index = y.clamp_min(0)[..., None]
    gaps = logits[0].gather(2, index) - logits[0].scatter(2, index, -torch.inf).amax(2, True)
    each = {"margin": gaps[..., 0]}
    tasks = [CRITERIA["dlr"](Categorical(logits[:, :, [t]]), index[:, t]) for t in (0, 1)]
    each["dlr"] = torch.stack(tasks, 1)
    for name, values in each.items():
        smallest = torch.where(y >= 0, values, torch.inf).amin(1)
        smallest[2] = 0.0
        assert_close(CRITERIA[name](Categorical(logits), y), smallest)
    log_p = logits[0].log_softmax(-1).gather(2, index)[..., 0]
    assert_close(log_likelihood(Categorical(logits), y), torch.where(y >= 0, log_p, 0).sum(1))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_step_follows_gradient_of_its_criterion(criterion):
    model, x, y = make_victim(20)
    victim = Attacked(model, UNIT)
    settings = Ascent("l2", 1, 1.0, criterion=criterion, stop_when_broken=False)
    ours = ascend(victim, x, y, generator(), 0.1, settings)
    z = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(
        CRITERIA[criterion](model.predict(z, generator()), y).sum(), z
    )
    assert_close(ours, (x - 0.1 * gradient / gradient.norm(dim=1, keepdim=True)).clamp(0, 1))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion_reaches_targets(criterion):
    model, x, y = make_victim(60)
    settings = Ascent("linf", 40, 0.1, target=2, criterion=criterion)
    towards = ascend(Attacked(model, UNIT), x, y, generator(), 1.0, settings)
    assert (model.predict(towards, generator()).guess == 2).double().mean() > 0.7


class Confident:
    """Predicts class 0 with a margin that float32 cannot distinguish from certainty."""

    def __init__(self, scale=400.0):
        self.scale = scale

    def predict(self, x, g):
        z = self.scale * (x.sum(1) - 2.2)
        return Categorical(torch.stack([z, -z, -z - 50], -1)[None, :, None])


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("scale", [400.0, 4e4])
def test_confident_network_is_attacked_by_every_criterion(scale, norm):
    """In float32 a softmax of large logits is exactly one and log p(y|x) is flat, so that its
    gradient is computed at tempered logits."""
    x = torch.rand(50, 4, generator=generator()) * 0.4 + 0.6  # class 0, far from the boundary
    y = torch.zeros(50, 1, dtype=torch.long)
    model = Confident(scale)
    victim = Attacked(model, UNIT)
    assert log_likelihood(model.predict(x, generator()), y).abs().max() == 0
    for name in CRITERIA:
        settings = Ascent(norm, 20, 0.25, criterion=name)
        x_adv = ascend(victim, x, y, generator(), {"linf": 0.5, "l2": 1.0}[norm], settings)
        assert victim.broken(x_adv, y, generator()).all(), name


def test_cross_entropy_gradient_is_accurate_near_probability_one():
    """Comparison with float64 autograd of log p, tempered where p is 1 in float32 or the norm is
    L1, for mixtures, tasks and missing labels."""
    kinds = itertools.product((1.0, 40.0, 1e6), (torch.float32, F64), ("linf", "l1"))
    for scale, dtype, norm in kinds:
        logits = scale * draw_normal(2, 30, 2, 5, seed=1)
        logits = logits[:1] if scale > 1 else logits
        y = torch.randint(5, (30, 2), generator=generator(2))
        # for correct labels, 1 - p rounds to 0
        y[:15] = logits.mean(0).argmax(-1)[:15]
        y[3, 0] = y[4] = -1
        factor = SPREAD / logits.std(-1).amax((0, 2))
        rounded = certainty(Categorical(logits), y) > 16
        if norm == "linf":
            factor = torch.where(rounded, factor.clamp_max(1.0), 1.0)
        assert scale == 1 or 0 < rounded.sum() < 30
        leaf = (logits * factor[:, None, None]).requires_grad_(True)
        (exact,) = torch.autograd.grad(log_likelihood(Categorical(leaf), y).sum(), leaf)
        ours = log_likelihood_logit_gradient(Categorical(logits.to(dtype)), y, norm).double()
        size = exact.abs().amax((0, 2, 3), keepdim=True).clamp_min(1e-300)
        assert_close(
            ours / size, exact / size, rtol=0, atol=1e-2 if dtype == torch.float32 else 1e-6
        )


def test_gradient_reaches_overconfident_members():
    """Without tempering, a member outvoted by the others has e^-14 of the slope and would never
    change; members of nearly equal certainty keep the derivative of log p."""
    y = torch.zeros(1, 1, dtype=torch.long)
    logits = double([[1.0, 0.0], [15.0, 0.0]])[:, None, None]

    def slopes(logits):
        return log_likelihood_logit_gradient(Categorical(logits), y, "linf")[:, 0, 0, 0]

    unsure, sure = slopes(logits)
    assert 1e-3 < float(sure / unsure) < 1
    alike = double([[12.0, 0.0], [15.0, 0.0]])[:, None, None].requires_grad_(True)
    (exact,) = torch.autograd.grad(log_likelihood(Categorical(alike), y).sum(), alike)
    assert_close(slopes(alike.detach()), exact[:, 0, 0, 0], rtol=1e-4, atol=0)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_gradient_is_independent_of_logit_scale(norm):
    """This also holds where one of 1,000 logits is large and their standard deviation is small."""
    one_large = torch.nn.functional.one_hot(torch.arange(20), 1000)[None, :, None].float()
    for logits in (30 * torch.randn(1, 20, 1, 6, generator=generator(3)), 1000 * one_large):
        y = logits[0].argmax(-1)
        first, other = (
            log_likelihood_logit_gradient(Categorical(c * logits), y, norm) for c in (1e3, 1e6)
        )
        assert_close(first, other, rtol=1e-4, atol=0)
        assert (first.abs().amax(-1) > 0).all()
    equal = log_likelihood_logit_gradient(Categorical(torch.ones(1, 1, 1, 4)), y[:1], norm)
    assert equal.isfinite().all()


def test_certainty_orders_like_log_p_without_saturating():
    logits = 4 * draw_normal(3, 40, 2, 4, seed=5)
    y = torch.randint(4, (40, 2), generator=generator(6))
    y[::4, 1] = -1
    predictive = Categorical(logits)
    assert_close(certainty(predictive, y), -(-log_likelihood(predictive, y)).log())
    sure = Categorical(torch.tensor([[200.0, 0.0], [300.0, 0.0], [1e7, 0.0]])[None, :, None])
    zeros = torch.zeros(3, 1, dtype=torch.long)
    assert log_likelihood(sure, zeros).tolist() == [0, 0, 0]
    assert_close(certainty(sure, zeros), torch.tensor([200.0, 300.0, 1e7]))


def test_dlr_refuses_two_classes():
    model, x, y = make_victim(5, classes=2)
    with pytest.raises(
        ConfigMismatchError, match=r"attacker.criterion: dlr requires .* use margin"
    ):
        ascend(Attacked(model), x, y, generator(), 0.1, Ascent("linf", 1, 1.0, criterion="dlr"))
