"""Stopping rules: counted paths compared with enumeration, simulated coverage and errors with exact
values, and the two p-values."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from support.runs.configured import component, load
from support.small.small_problems import advance

from components.errors import ConfigMismatchError
from components.inference.foundations import rules

RULES = ["fixed", "until_significant", "until_short", "negative_binomial"]


def run_rule(steps=4, prior=(1.0, 1.0), **settings):
    problem, rng = load("tosses", n_test=10)
    model = component("model", "beta_bernoulli", a=prior[0], b=prior[1]).build(problem, rng)
    inference = component("inference", "stopping_rule", **{"n_max": 40, "width": 0.4} | settings)
    state = inference.init(model, problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, steps)
    return inference.posterior(state), problem


def binomial_tail(n, k, theta):
    return stats.binom.sf(k - 1, n, theta)


def test_p_values_and_intervals_match_formulas():
    for n, k in [(1, 0), (5, 5), (12, 9), (12, 3), (20, 10)]:
        above = binomial_tail(n, k, 0.4)
        below = 1 - binomial_tail(n, k + 1, 0.4)
        position = np.array(n), np.array(k)
        assert float(rules.tail_probability(*position, 0.4, "greater")) == pytest.approx(above)
        assert float(rules.tail_probability(*position, 0.4, "two_sided")) == pytest.approx(
            min(1.0, 2 * min(above, below))
        )
        low, high = (float(end) for end in rules.confidence_interval(*position, 0.9))
        assert low == 0 if k == 0 else binomial_tail(n, k, low) == pytest.approx(0.05)
        assert high == 1 if k == n else 1 - binomial_tail(n, k + 1, high) == pytest.approx(0.05)


def test_two_p_values_share_one_posterior():
    record, _ = run_rule(1, simulations=10)
    # P(9 heads or more of 12); P(9 heads or more before the third tail) = P(9 or more of the first
    # 11)
    assert record.p_values["binomial"] == pytest.approx(299 / 4096)
    assert record.p_values["negative_binomial"] == pytest.approx(binomial_tail(11, 9, 0.5))
    assert round(record.p_values["negative_binomial"], 4) == 0.0327
    assert record.beta == (10.0, 4.0)  # independent of the stopping rule
    assert record.posterior_null == pytest.approx(binomial_tail(13, 10, 0.5))  # P(Beta(10, 4) ≤ ½)
    # a constant times θ⁹(1 − θ)³ under either rule
    likelihoods = [math.comb(12, 9), math.comb(11, 9)]
    theta = np.linspace(0.05, 0.95, 7)
    posteriors = [c * theta**9 * (1 - theta) ** 3 for c in likelihoods]
    np.testing.assert_allclose(*(p / p.sum() for p in posteriors))


@pytest.mark.parametrize("rule", RULES)
def test_paths_match_all_sequences(rule):
    record, _ = run_rule(1, simulations=1, n_max=9, width=0.75, alpha=0.2)
    stopped = record.tables.stopped[rule]
    counted = {}
    theta = 0.37
    for tosses in itertools.product((0, 1), repeat=9):
        n = next(n for n in range(1, 10) if n == 9 or ends(rule, record, n, sum(tosses[:n])))
        k = sum(tosses[:n])
        probability = math.prod(theta if t else 1 - theta for t in tosses)
        counted[n, k] = counted.get((n, k), 0.0) + probability
    exact = dict(
        zip(
            zip(stopped.n.tolist(), stopped.k.tolist(), strict=True),
            stopped.probabilities(theta),
            strict=True,
        )
    )
    assert exact == pytest.approx(counted)
    assert stopped.mean_probabilities((2.0, 3.0)).sum() == pytest.approx(1)


def ends(rule, record, n, k):
    """A literal version of the rule."""
    low, high = (ends[n, k] for ends in record.tables.ends["confidence"])
    return {
        "fixed": False,
        "until_significant": record.tables.p[n, k] < record.alpha,
        "until_short": high - low <= 0.75,
        "negative_binomial": n - k == 3,
    }[rule]


def test_only_credible_intervals_keep_coverage():
    record, _ = run_rule(10, simulations=1000, n_max=200, prior=(2.0, 2.0))
    for rule in RULES:
        share, error = record.coverage("credible", rule)
        # over the prior, by (3.1.3)
        assert record.exact_coverage("credible", rule)[0] == pytest.approx(0.95)
        for kind in ("credible", "confidence"):
            share, error = record.coverage(kind, rule)
            exact = np.array(record.exact_coverage(kind, rule))
            assert (np.abs(share - exact) < 4 * np.maximum(error, 1e-3)).all()
    level = dict(
        zip(RULES, (record.exact_coverage("confidence", rule)[1] for rule in RULES), strict=True)
    )
    assert level["fixed"] >= 0.95
    assert level["until_significant"] < 0.75
    assert record.exact_error("fixed") <= 0.05
    wrong, exact = record.error_by_n_max()
    assert exact[-1] == pytest.approx(record.exact_error("until_significant"))
    assert exact[-1] > 0.25
    assert abs(wrong[-1] - exact[-1]) < 4 * (exact[-1] * (1 - exact[-1]) / record.n) ** 0.5
    assert (np.diff(exact) >= 0).all()


def test_wrong_prior_breaks_coverage():
    kept, _ = run_rule(1, simulations=1, nature=[1.0, 1.0])
    lost, _ = run_rule(1, simulations=1, nature=[30.0, 30.0])
    rule = "until_significant"
    assert kept.exact_coverage("credible", rule)[0] == pytest.approx(0.95)
    assert lost.exact_coverage("credible", rule)[0] < 0.9


def test_prediction_matches_posterior_mean():
    record, problem = run_rule(1, simulations=1)
    density = record.log_predictive(problem.test)
    assert density[problem.test.x[:, 0] == 1][0].exp() == pytest.approx(10 / 14)
    with pytest.raises(ConfigMismatchError, match="at least one toss is required"):
        load("tosses", heads=0, tails=0)
    for keys, words in [
        (
            {"rules": ["until_short"], "width": 0.01},
            "width=0.01: .*inference.n_max=40",
        ),
        (
            {"rules": ["negative_binomial"], "tails": 50},
            "tails=50: .*inference.n_max=40 .*; lower the first",
        ),
        (
            {"rules": ["until_significant"], "n_max": 4},
            "no result is significant within inference.n_max=4",
        ),
    ]:
        with pytest.raises(ConfigMismatchError, match=words):
            run_rule(1, simulations=1, **keys)
