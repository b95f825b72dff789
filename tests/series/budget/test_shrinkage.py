"""Shrinkage of effects compared with dense conditioning, and predicted and realised gains of
plans."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from components.series.budget.promise import Promise
from components.series.budget.shrinkage import shrink_effects
from components.series.budget.sum_law import SumLaw


def draw_law(mean, cov, draws, rng):
    """Effects e of two weeks, the second worth half, and a base that is anticorrelated with the
    first."""
    e = rng.multivariate_normal(mean, cov, draws)
    a = 50 - 2 * e[:, 0] + rng.normal(0, 1, draws)
    return SumLaw(a, np.concatenate([e, e / 2], 1), np.full(draws, 4.0))


def condition(mean, cov):
    """Mean and covariance of e by dense conditioning of (e, m), with τ and κ on a separate grid, m
    ~ N(0, 10⁸)."""
    c = len(mean)
    wide = 1e8
    typical = np.trace(cov) / c
    parts = []
    for share in np.linspace(0.0005, 0.9995, 500):
        for power in (0.0, 0.5, 1.0):
            tau2 = typical * (1 / share - 1)
            prior = tau2 * np.diag((cov.diagonal() / typical) ** power) + wide
            V = prior + cov
            gain = prior @ np.linalg.inv(V)
            log_p = multivariate_normal.logpdf(mean, np.zeros(c), V)
            parts.append((log_p, gain @ mean, prior - gain @ prior))
    log_p = np.array([part[0] for part in parts])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = np.stack([part[1] for part in parts])
    centre = p @ means
    away = means - centre
    spread = np.einsum("g,gij->ij", p, np.stack([part[2] for part in parts]))
    return centre, spread + np.einsum("g,gi,gj->ij", p, away, away)


def test_gaussian_effects_equal_dense_conditioning():
    rng = np.random.default_rng(0)
    mean = np.array([1.0, 3.0, -2.0])
    cov = np.diag([0.5, 2.0, 6.0]) + 0.3
    law = draw_law(mean, cov, 200_000, rng)
    effects = shrink_effects(law, 3, rng)
    centre, spread = condition(mean, cov)
    assert effects.effect[:3] == pytest.approx(centre, abs=0.03)
    assert effects.spread[:3, :3] == pytest.approx(spread, abs=0.08)
    assert effects.effect[3:] == pytest.approx(effects.effect[:3] / 2)
    # the base depends on the first effect, as in the posterior
    assert effects.a.mean() == pytest.approx(50 - 2 * centre[0], abs=0.05)
    assert effects.shared[0] == pytest.approx(-2 * spread[0, 0], abs=0.15)
    assert effects.v is law.v


def test_single_channel_and_known_effects_are_not_shrunk():
    rng = np.random.default_rng(1)
    law = draw_law(np.array([1.0, 2.0]), np.eye(2), 50, rng)
    assert shrink_effects(law, 1, rng) is law
    law.r[0, 0] = 0.0  # a draw without the first channel
    assert shrink_effects(law, 2, rng) is law
    fixed_law = SumLaw(law.a, np.ones((50, 4)), law.v)
    assert shrink_effects(fixed_law, 2, rng) is fixed_law


def test_shrunk_plans_reach_their_predicted_gain():
    rng = np.random.default_rng(2)
    sd = np.array([0.3, 0.5, 1.0, 2.0, 3.0])
    kept = {True: [], False: []}
    for _ in range(400):
        truth = rng.normal(1.0, 1.0, 5)
        e = rng.normal(truth + sd * rng.standard_normal(5), sd, (200, 5))
        plain = SumLaw(np.zeros(200), e, np.ones(200))
        for shrink in kept:
            law = shrink_effects(plain, 5, rng) if shrink else plain
            u = 5.0 * np.eye(5)[law.effect.argmax()]
            promise = Promise.of(law, u - 1)
            scores = promise.judge(float(truth @ (u - 1)))
            kept[shrink].append((scores["plan_excess"], scores["plan_coverage90"]))
    (excess, covered), (excess_plain, covered_plain) = (np.mean(kept[k], 0) for k in kept)
    assert excess_plain > 5
    assert abs(excess) < 0.3 * excess_plain
    assert covered == pytest.approx(0.9, abs=0.03)
    assert covered_plain < 0.87


def test_predicted_gain_is_compared_with_the_true_one():
    rng = np.random.default_rng(3)
    law = SumLaw(np.zeros(100_000), rng.normal([2.0, 1.0], [3.0, 4.0], (100_000, 2)), np.ones(1))
    promise = Promise.of(law, np.array([1.0, -1.0]))
    half = 5 * norm.ppf(0.95)
    assert promise.gain == pytest.approx(1.0, abs=0.06)
    assert [promise.lower, promise.upper] == pytest.approx([1 - half, 1 + half], abs=0.1)
    assert promise.judge(-8.0) == {
        "plan_realised": -8.0,
        "plan_excess": promise.gain + 8.0,
        "plan_over_promised": 1.0,
        "plan_coverage90": 0.0,
    }
    assert promise.judge(3.0)["plan_over_promised"] == 0.0
    assert promise.judge(3.0)["plan_coverage90"] == 1.0
    point = Promise.of(SumLaw(law.a[:1], law.r[:1], law.v), np.array([1.0, -1.0]))
    assert set(point.judge(3.0)) == {"plan_realised", "plan_excess", "plan_over_promised"}
    assert "no interval" in point.describe()
