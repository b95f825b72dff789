"""The attacker compared with brute force, within its budget."""

import dataclasses
import math

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import F64, double, draw_normal, generator, normal
from support.small.small_filters import problem, spoofer, victim
from torch.testing import assert_close

from components.series.attackers.shifts import random_signs, within
from runner.execution.rng import Streams

RNG = Streams(7)


class OnlyErrors:
    """A victim that returns its error but no gradient."""

    def __init__(self, of):
        self.of = of
        self.asked = 0
        self.observations = of.observations
        self.is_observed = of.is_observed

    def error(self, u):
        self.asked += 1
        return self.of.error(u)

    def gradient(self, u):
        raise AssertionError("a black box asked for the gradient")


@pytest.mark.parametrize("error", ["rmse", "nmse"])
def test_kalman_error_gradient_equals_finite_differences(error):
    p = problem(6, 2)
    v = victim(p, error=error)
    g = generator(0)
    u, way = (normal(g, p.observations.shape) for _ in range(2))
    value, slope = v.gradient(u)
    assert_close(value, v.error(u))
    h = 1e-5
    differences = (v.error(u + h * way) - v.error(u - h * way)) / (2 * h)
    assert_close((slope * way).sum((1, 2)), differences, rtol=1e-6, atol=1e-9)


def test_error_is_the_mean_square_over_times_and_states():
    p = problem(8, 2)
    mean = victim(p).filter(torch.zeros_like(p.observations)).mean
    literal = ((p.states - mean) ** 2).mean((1, 2))
    assert_close(victim(p).error(torch.zeros_like(p.observations)), literal)
    square = (p.states**2).mean(1)
    nmse = (((p.states - mean) ** 2).mean(1) / square).mean(1)
    assert_close(victim(p, error="nmse").error(torch.zeros_like(p.observations)), nmse)


def test_shifts_are_in_units_of_the_noise():
    p = problem(4, 2)
    v = victim(p)
    u = draw_normal(*p.observations.shape, seed=2)
    delta = v.shift(u) - p.observations
    length = torch.einsum("rti,ij,rtj->rt", delta, torch.linalg.inv(p.system.Sigma), delta).sqrt()
    assert_close(length, u.norm(dim=-1))


def test_single_shift_is_as_bad_as_the_worst_of_a_grid():
    p = problem(5, 2)
    v = victim(p)
    struck = torch.zeros(2, 5, dtype=torch.bool)
    struck[:, 2] = True
    attacker = spoofer(steps=15, step_size=1.0, restarts=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(attacker), "struck", lambda *_: struck)
        shift = v.error(attacker.shift(v, RNG, 3.0, None))
    worst = torch.zeros(2, dtype=F64)
    for angle in torch.linspace(0, 2 * math.pi, 241, dtype=F64)[:-1]:
        u = torch.zeros_like(p.observations)
        # convex in u: the worst is on the boundary
        u[:, 2] = 3.0 * torch.stack([angle.cos(), angle.sin()])
        worst = torch.maximum(worst, v.error(u))
    assert (shift >= worst * (1 - 1e-3)).all()
    assert (shift <= worst * (1 + 1e-3)).all()


@pytest.mark.parametrize("access", ["gradient", "queries", "nothing"])
def test_attacker_respects_its_budget_and_times(access):
    p = problem(30, 4)
    p.observations[1, 3:9] = math.nan
    v = victim(p)
    attacker = spoofer(access=access, steps=4, queries=12, probability=0.3)
    struck = attacker.struck(v, RNG)
    shift = None
    assert 0 < struck.double().mean() < 0.6
    for eps in (0.5, 2.0, 8.0):
        shift = attacker.shift(v, RNG, eps, shift)
        assert shift.norm(dim=-1).max() <= eps * (1 + 1e-12)
        assert not shift[~struck].any()
        assert not shift[p.missing].any()
    assert torch.equal(v.shift(shift).isnan(), p.observations.isnan())
    assert torch.isfinite(v.error(shift)).all()
    assert not attacker.shift(v, RNG, 0.0, None).any()


def test_attack_with_more_knowledge_is_at_least_as_strong():
    p = problem(40, 6)
    v = victim(p)
    nothing = v.error(torch.zeros_like(p.observations))
    signs, black, white = (
        v.error(spoofer(probability=0.2, **keys).shift(v, RNG, 4.0, None))
        for keys in ({"access": "nothing"}, {"access": "queries", "queries": 60}, {"steps": 6})
    )
    assert white.mean() > black.mean() > signs.mean()
    assert (black >= torch.maximum(signs, nothing)).all()
    assert (white > nothing).all()


def test_black_box_attack_queries_errors_within_its_limit():
    p = problem(15, 2)
    v = OnlyErrors(victim(p))
    few = v.of.error(spoofer(access="queries", queries=5).shift(v, RNG, 2.0, None))
    asked = v.asked
    assert asked <= 5 + 2
    many = v.of.error(spoofer(access="queries", queries=60).shift(v, RNG, 2.0, None))
    assert (many >= few).all()


def test_larger_budget_starts_at_the_smaller_ones_solution():
    p = problem(30, 4)
    v = victim(p)
    attacker = spoofer(steps=2, restarts=0)
    small = spoofer(steps=8).shift(v, RNG, 2.0, None)
    assert (v.error(attacker.shift(v, RNG, 2.5, small)) >= v.error(small)).all()


def test_worst_times_have_the_steepest_gradient():
    p = problem(20, 3)
    v = victim(p)
    struck = spoofer(times="worst", probability=0.25).struck(v, RNG)
    assert struck.sum(1).tolist() == [5, 5, 5]
    slope = v.gradient(torch.zeros_like(p.observations))[1].norm(dim=-1)
    least = slope.masked_fill(~struck, math.inf).amin(1)
    most = slope.masked_fill(struck, 0).amax(1)
    assert (least >= most).all()
    message = "times=worst: the worst times are chosen by the gradient; set access=gradient"
    with pytest.raises(ValidationError, match=message):
        spoofer(times="worst", access="queries")


def test_random_signs_spend_the_whole_budget():
    struck = torch.rand(5, 40, generator=generator(0)) < 0.5
    u = random_signs(struck, 3, 2.0, generator(1), torch.zeros(1, dtype=F64))
    assert_close(u.norm(dim=-1), 2.0 * struck.double())
    assert abs(float(u.sign().sum()) / float(struck.sum() * 3)) < 0.2


def test_projection_keeps_inner_points_and_shortens_others():
    u = double([[[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]])
    assert within(u, 1.0).tolist() == [[pytest.approx([0.6, 0.8]), [0.3, 0.4], [0.0, 0.0]]]


def test_shorter_window_propagates_errors_through_fewer_times():
    p = problem(12, 2)
    whole = victim(p)
    parts = victim(p, window=4)
    u = torch.zeros_like(p.observations)
    error, slope = whole.gradient(u)
    same, cut = parts.gradient(u)
    assert_close(error, same)
    assert_close(slope[:, 8:], cut[:, 8:])  # nothing follows the last window
    assert not torch.allclose(slope[:, :4], cut[:, :4])
    first = dataclasses.replace(p, states=p.states[:, :4], observations=p.observations[:, :4])
    ahead = dataclasses.replace(whole, problem=first)
    assert_close(ahead.gradient(u[:, :4])[1] * 4 / 12, cut[:, :4])
