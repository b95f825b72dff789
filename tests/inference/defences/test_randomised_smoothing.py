"""Randomised smoothing: votes, radii and their coverage, certificates under attack, training."""

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from scipy import stats
from smoothed_networks import distances, linear, train_smoothed
from support.runs.configured import double, normal, threat
from support.small.small_problems import classes, component
from torch.nn.functional import one_hot
from torch.testing import assert_close

from components.attackers.norms import NORMS
from components.contracts.predictive import Categorical
from components.evaluation.assess import assess_security
from components.evaluation.security.certificate import SmoothedLabels, certify, perturbations
from components.posteriors import noisy_votes
from components.posteriors.noisy_votes import certified_radius
from runner.execution.rng import Streams


def assess(problem, posterior, rng, eps):
    attack = component("attacker", "apgd", norm="l2", steps=10)
    assessed = assess_security(problem, posterior, attack, threat(attack, eps), rng, False)
    passed = {check.name: check.passed for check in assessed.checks}
    return assessed.scores, passed["no certified label is broken"]


# radii
def test_radius_matches_formula():
    """R = σ Φ⁻¹(p̲) by the standard library's normal distribution, and 0 up to one half."""
    p = double([0.1, 0.5, 0.50001, 0.8, 0.9931])
    expected = [max(0.0, 0.25 * NormalDist().inv_cdf(float(each))) for each in p]
    assert certified_radius(p, 0.25).tolist() == pytest.approx(expected, abs=1e-12)


def test_certificate_matches_literal_computation():
    """Votes of the same draws, the bound by SciPy's Beta distribution, and R in closed form."""
    problem = classes(n=30, n_inputs=3)
    posterior, _ = train_smoothed(problem)
    x = problem.test.x
    certificate = posterior.certify(x, Streams(5).evaluation)
    g = Streams(5).evaluation
    votes, counted = (
        sum(
            one_hot(posterior.network(x + posterior.sigma * eta)[:, 0].argmax(-1), 3)
            for eta in normal(g, draws, 30, 3)
        )
        for draws in (30, 400)
    )
    c = votes.argmax(1, keepdim=True)
    k = counted.gather(1, c).numpy()
    p = np.where(k > 0, stats.beta.ppf(0.001, k, 400 - k + 1), 0.0)
    R = posterior.sigma * stats.norm.ppf(np.maximum(p, 0.5))
    assert torch.equal(certificate.guess, c)
    assert_close(certificate.radius, torch.from_numpy(R), rtol=0, atol=1e-12)
    assert (certificate.radius > 0).any()


def test_linear_radius_tends_to_boundary_distance():
    """P(f(x + η) = 1) = Φ(m/σ) at distance m, so that R = m for the probability itself."""
    problem = classes(n=80, n_classes=2)
    x = problem.test.x
    gaps = []
    for n in (200, 20_000):
        posterior, w, b = linear(problem, certificate_draws=n, level=1e-6)
        distance = distances(x, w, b).abs()
        certificate = posterior.certify(x, Streams(1).evaluation)
        certified = (distance < 2 * posterior.sigma) & (certificate.radius[:, 0] > 0)
        assert (certificate.guess[:, 0] == (x @ w + b > 0))[certified].all()
        assert (certificate.radius[:, 0] <= distance).all()
        gaps.append(float((distance - certificate.radius[:, 0])[certified].mean()))
    assert certified.sum() > 40
    assert gaps[1] < 0.2 * gaps[0]
    assert gaps[1] < 0.06 * posterior.sigma


def share_exceeding():
    """Share of certificates of one row with a radius above its true distance."""
    problem = classes(n=1, n_classes=2)
    posterior, w, b = linear(problem, certificate_draws=100, level=0.05)
    x = problem.test.x
    x = x + (0.25 - distances(x, w, b))[:, None] * w / w.norm()  # at distance 0.25
    certificate = posterior.certify(x.expand(4000, -1), Streams(2).evaluation)
    return float((certificate.radius > 0.25).double().mean())


def test_radius_error_rate_is_below_level(monkeypatch):
    error = 4 * math.sqrt(0.05 * 0.95 / 4000)
    assert 0.005 < share_exceeding() <= 0.05 + error
    # a broken variant: the upper bound in place of the lower one
    from components.maths.divergences.binomial_bound import upper_bound

    monkeypatch.setattr(noisy_votes, "lower_bound", upper_bound)
    assert share_exceeding() > 0.8


def test_boundary_row_abstains():
    """The row abstains except with probability α, or 2α if the draws that bound p_A also select the
    class."""
    problem = classes(n=1, n_classes=2)
    posterior, w, b = linear(problem, level=0.05, certificate_draws=401)
    x = problem.test.x
    x = x - distances(x, w, b)[:, None] * w / w.norm()
    certificate = posterior.certify(x.expand(4000, -1), Streams(0).evaluation)
    share = float((certificate.radius > 0).double().mean())
    assert 0.02 < share <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 4000)


# certificates under attack
@pytest.mark.parametrize("measure", ["linf", "l2", "l1"])
def test_radii_hold_in_every_norm(measure):
    """A label is certified where R exceeds the longest perturbation, found by enumerating corners;
    a smoothed linear network is correct at the worst point of every certified ball."""
    problem = classes(n=60, n_inputs=6, n_classes=2)
    posterior, w, b = linear(problem, certificate_draws=4000)
    x = problem.test.x
    y = problem.test.y
    first = certify(problem, posterior, y, measure, 0.0, Streams(0))
    assert first.method == "votes under noise"
    assert 0 < first.rows.sum() < len(y)
    for eps in (0.02, 0.1):
        certificate = certify(problem, posterior, y, measure, eps, Streams(0), first)
        repeat = certify(problem, posterior, y, measure, eps, Streams(0))
        assert torch.equal(certificate.rows, repeat.rows)
        low = (x - eps).clamp_min(0) - x
        high = (x + eps).clamp_max(1) - x
        longest = torch.maximum(-low, high).norm(dim=1)
        if measure != "linf":
            longest = longest.clamp_max(eps)
        expected = first.smoothed.radius[:, 0] > longest
        agrees = certificate.rows[:, 0] == expected
        assert agrees.all()
        sign = y[:, 0].double() * 2 - 1
        worst = x - eps * sign[:, None] * NORMS[measure].steepest(w.expand_as(x))
        assert (((worst @ w + b) * sign > 0) | ~certificate.rows[:, 0]).all()


def test_word_changes_have_root_of_their_number_as_length():
    problem = classes(n=20, n_classes=2)
    problem.domain = "binary"
    problem.test.x.round_()
    y = torch.ones_like(problem.test.y)
    y[:5] = 0
    for k in (0, 1, 3):
        lengths = perturbations(problem, y, "flip", k).l2_norms
        assert_close(lengths, math.sqrt(k) * y[:, 0].double())


def test_certified_accuracy_is_below_adaptive_accuracy():
    problem = classes(n=120, n_inputs=6)
    posterior, rng = train_smoothed(problem, 200, sigma=0.1, certificate_draws=2000)
    scores, unbroken = assess(problem, posterior, rng, [0.02, 0.1, 0.2])
    for eps in ("0.02", "0.10", "0.20"):
        assert scores[f"certified_accuracy/eps={eps}"] <= scores[f"robust_accuracy/eps={eps}"]
    assert scores["certified_accuracy/eps=0.02"] > 0.5 > scores["certified_accuracy/eps=0.20"]
    assert 0 < scores["abstained"] < 0.3
    assert unbroken


def test_few_votes_may_contradict_certificate_slightly():
    """With 40 of 100 votes for y, p ≥ ½ remains possible at level 0.001 for 10 labels; with 20 it
    does not."""
    y = torch.zeros(10, 1, dtype=torch.long)
    share = torch.tensor([40.0] * 5 + [20.0] * 5)
    logits = (torch.stack([share, 100 - share], -1) + torch.tensor([0.4, 0.6])).log()
    labels = SmoothedLabels(torch.ones(10, 1), 0.0, 100, 0.001)
    outvoted = labels.outvoted(y, Categorical(logits[None, :, None]))
    assert outvoted.flatten().tolist() == [False] * 5 + [True] * 5
    # P(K ≤ 41 | ½) and P(K ≤ 21 | ½) are on opposite sides of the level
    assert stats.binom.cdf([41, 21], 100, 0.5) == pytest.approx([0.0443, 0.0], abs=1e-4)


def test_false_certificate_fails_its_check(monkeypatch):
    problem = classes(n=60, n_inputs=6)
    posterior, rng = train_smoothed(problem)
    monkeypatch.setattr(noisy_votes, "certified_radius", lambda p, sigma: 9.0 * (p > 0).double())
    _, unbroken = assess(problem, posterior, rng, [1.0])
    assert not unbroken
