"""Attacks on words against every mail that could be sent, one by one."""

import math

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, threat
from support.small.small_spam import fitted, log_odds, neighbours, rows, words

from components.attackers.attacked import Attacked
from components.attackers.words.beliefs import (
    attack_frequencies,
    beta_parameters,
    estimate_frequency,
    random_beliefs,
)
from components.attackers.words.changes import change_sets, flip_words, possible
from components.attackers.words.integer_programme import cheapest
from components.attackers.words.word_insertion import WordInsertion
from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError
from components.evaluation.security.curves import security_curve
from runner.execution.rng import Streams

DIRECTIONS = ["insertion", "flip"]


@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sets_lead_to_every_neighbour_once(direction, most):
    x = torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0]])
    sets = change_sets(5, most)
    assert len(sets) == sum(math.comb(5, i) for i in range(most + 1))
    found = [
        z
        for z, can in zip(
            rows(flip_words(x.expand(len(sets), -1), sets)),
            possible(x, sets, direction)[0],
            strict=True,
        )
        if can
    ]
    assert sorted(found) == sorted(neighbours(rows(x)[0], most, direction))


@pytest.mark.parametrize("model", ["naive_bayes", "logistic_lasso", "irf"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_attack_is_the_least_of_3_11_by_trying_all(model, direction):
    problem = words(n_words=6)
    posterior = fitted(problem, model, **({"trees": 20} if model == "irf" else {}))
    attack, victim = component("attacker", f"word_{direction}"), Attacked(posterior, (0.0, 1.0))
    x, y = problem.test.x[:30], problem.test.y[:30]
    for eps in (0, 1, 2):
        attacked = attack.perturb(victim, x, y, Streams(0), eps)
        for row, sent, label in zip(rows(x), rows(attacked), y[:, 0].tolist(), strict=True):
            if label == 0:
                assert sent == row  # integrity violation: innocent mails are left alone
                continue
            every = neighbours(row, eps, direction)
            p = posterior.predict(torch.tensor(every, dtype=x.dtype), None).probs[:, 0, 1]
            assert sent in every
            assert float(p[every.index(sent)]) == pytest.approx(float(p.min()), abs=1e-12)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_greedy_changes_of_naive_bayes_are_the_exact_ones_and_never_worse_than_fewer(direction):
    """The log odds of naive Bayes add up, so that the best words one by one are the best
    together."""
    problem = words(n_words=7)
    victim = Attacked(fitted(problem), (0.0, 1.0))
    x, y = problem.test.x[:30], problem.test.y[:30]
    exact, greedy = (component("attacker", f"word_{direction}", exact=n) for n in (4, 0))
    for eps in (2, 4):
        assert torch.equal(*(a.perturb(victim, x, y, Streams(0), eps) for a in (exact, greedy)))


def test_a_confident_victim_is_attacked_where_probabilities_are_rounded_to_one():
    problem = words(n_words=8)
    posterior = fitted(problem)
    posterior.fitted["log_class"] = torch.tensor([-60.0, 0.0], dtype=F64)
    x, y = problem.test.x[:10], torch.ones(10, 1, dtype=torch.long)
    attacked = component("attacker", "word_flip").perturb(Attacked(posterior), x, y, Streams(0), 1)
    for row, sent in zip(rows(x), rows(attacked), strict=True):
        assert log_odds(posterior, sent) == pytest.approx(
            min(log_odds(posterior, z) for z in neighbours(row, 1, "flip"))
        )


@pytest.mark.parametrize("removal", [None, 0.7])
def test_dalvi_solves_3_4_by_trying_all(removal):
    problem = words(n_words=7, seed=2)
    posterior = fitted(problem)
    attack = component("attacker", "dalvi", insertion_cost=1.3, removal_cost=removal)
    x, y = problem.test.x[:40], torch.ones(40, 1, dtype=torch.long)
    attacked, moved = attack.perturb(Attacked(posterior), x, y, Streams(0), 3), 0

    def cost(a, b):
        return sum(0 if u == v else 1.3 if v else removal for u, v in zip(a, b, strict=True))

    for row, sent in zip(rows(x), rows(attacked), strict=True):
        every = neighbours(row, 3, "insertion" if removal is None else "flip")
        passing = [z for z in every if log_odds(posterior, z) <= 0]
        if log_odds(posterior, row) <= 0 or not passing:
            assert sent == row
            continue
        moved += 1
        assert sent in passing
        assert cost(row, sent) == pytest.approx(min(cost(row, z) for z in passing))
    assert moved > 5


def test_the_integer_programme_of_a_known_answer():
    gain, cost = np.array([3.0, 2.0, 2.0, 9.0]), np.array([2.5, 1.0, 1.0, np.inf])
    assert cheapest(gain, 3.5, cost, 4).tolist() == [0, 1, 1, 0]
    assert cheapest(gain, 3.5, cost, 1) is None
    assert cheapest(gain, 3.0, np.array([2.5, 1.5, 1.5, np.inf]), 4).tolist() == [1, 0, 0, 0]


def test_dalvi_is_for_naive_bayes():
    problem = words()
    victim = Attacked(fitted(problem, "logistic_lasso"))
    with pytest.raises(ConfigMismatchError, match="model=naive_bayes"):
        component("attacker", "dalvi").perturb(
            victim, problem.test.x, problem.test.y, Streams(0), 1
        )


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_beta_has_the_mean_and_the_variance_asked_for(share):
    for r in (1e-6, 0.2, 0.5, 0.7, 0.999):
        d1, d2 = (
            float(d) for d in beta_parameters(torch.tensor(math.log(r / (1 - r)), dtype=F64), share)
        )
        largest = min(r**2 * (1 - r) / (1 + r), r * (1 - r) ** 2 / (2 - r))
        assert d1 / (d1 + d2) == pytest.approx(r, rel=1e-9)
        assert d1 * d2 / ((d1 + d2) ** 2 * (d1 + d2 + 1)) == pytest.approx(
            share * largest, rel=1e-9
        )
        assert min(d1, d2) >= 1 - 1e-9
    for value in (-80.0, 80.0):  # r = 2e-35 and 1 − 2e-35
        assert all(
            torch.isfinite(d) for d in beta_parameters(torch.tensor(value, dtype=F64), share)
        )


def test_beliefs_are_beta_draws():
    r, n = 0.3, 40_000
    odds = torch.tensor([math.log(r / (1 - r))], dtype=F64)
    p = torch.sigmoid(random_beliefs(odds, 0.5, n, torch.Generator().manual_seed(0)))
    variance = 0.5 * r**2 * (1 - r) / (1 + r)
    assert abs(float(p.mean()) - r) < 4 * math.sqrt(variance / n)
    assert p.var() == pytest.approx(variance, rel=0.04)


def alone(odds, which, n):
    """p̂ of one candidate, drawn for two mails at once, of which the other has its candidates in
    another order."""
    both = torch.cat([odds, odds.flip(1)])
    places = torch.tensor([which, odds.shape[1] - 1 - which])
    found = estimate_frequency(places, both, 0.8, n, torch.Generator().manual_seed(3))
    return float(found[1])


def test_frequencies_count_3_12_literally_and_converge():
    """p̂ from K draws against ∫ f_z(p) Π_{w≠z} (1 − F_w(p)) dp by quadrature; the error is that of
    K Bernoulli trials."""
    from scipy.stats import beta

    odds = torch.tensor([[-1.0, -0.4, 0.3, torch.inf]], dtype=F64)
    d1, d2 = beta_parameters(odds[0, :3], 0.8)
    grid = (np.arange(4_000) + 0.5) / 4_000
    laws = [beta(float(a), float(b)) for a, b in zip(d1, d2, strict=True)]
    exact = []
    for z in range(3):
        rest = np.prod([laws[w].sf(grid) for w in range(3) if w != z], 0)
        exact.append(float((laws[z].pdf(grid) * rest).mean()))
    assert sum(exact) == pytest.approx(1, abs=1e-5)
    for n in (100, 10_000):
        found = attack_frequencies(odds, 0.8, n, torch.Generator().manual_seed(1))[0]
        assert found.sum() == pytest.approx(1)
        assert float(found[3]) == 0
        for p, value in zip(exact, found[:3].tolist(), strict=True):
            assert abs(value - p) < 4 * math.sqrt(p * (1 - p) / n)
            assert abs(alone(odds, exact.index(p), n) - p) < 4 * math.sqrt(p * (1 - p) / n)
    # Counting one by one what the same draws choose.
    draws = random_beliefs(odds[:, :3], 0.8, 50, torch.Generator().manual_seed(2))
    counts = [sum(min(range(3), key=lambda z: d[0, z]) == w for d in draws) / 50 for w in range(3)]
    again = attack_frequencies(odds[:, :3], 0.8, 50, torch.Generator().manual_seed(2))[0]
    assert again.tolist() == pytest.approx(counts)


def test_the_frequency_of_one_candidate_has_the_law_of_all():
    """Of twenty candidates, some of them none: against the frequencies that draw them all, in
    standard errors."""
    g, n = torch.Generator().manual_seed(0), 20_000
    odds = torch.randn(4, 20, generator=g, dtype=F64)
    odds[1, 5:] = torch.inf
    odds[2, 1:] = torch.inf  # nothing else to send
    all_of_them = attack_frequencies(odds, 0.5, n, g)
    for which in range(5):
        found = estimate_frequency(torch.tensor([which, which, 0, which]), odds, 0.5, n, g)
        expected = all_of_them[range(4), [which, which, 0, which]]
        error = (2 * expected * (1 - expected) / n).sqrt() + 1e-12
        assert ((found - expected).abs() / error).max() < 4
    assert float(found[2]) == 1
    sure = estimate_frequency(odds.argmin(1), odds, 0.0, n, g)
    assert sure.tolist() == [1, 1, 1, 1]
    assert estimate_frequency(odds.argmax(1), odds, 0.0, n, g).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_ara_without_uncertainty_is_the_deterministic_attack(direction):
    problem = words(n_words=7)
    victim = Attacked(fitted(problem))
    ara = component("attacker", "ara", direction=direction, variance=0.0)
    sure = component("attacker", f"word_{direction}")
    for eps in (0, 1, 2):
        a, b = (
            t.perturb(victim, problem.test.x, problem.test.y, Streams(0), eps) for t in (ara, sure)
        )
        assert torch.equal(a, b)


def test_ara_draws_with_the_frequencies_of_3_12():
    problem = words(n_words=5)
    victim, ara = Attacked(fitted(problem)), component("attacker", "ara", variance=1.0)
    x = problem.test.x[:1].expand(4000, -1)
    sent = rows(ara.perturb(victim, x, torch.ones(4000, 1, dtype=torch.long), Streams(0), 2))
    sets = change_sets(5, 2)
    p = ara.frequencies(victim, x[:1], 2, 20_000, torch.Generator().manual_seed(0))[0]
    for z, value in zip(rows(flip_words(x[: len(sets)], sets)), p.tolist(), strict=True):
        assert (
            abs(sent.count(z) / 4000 - value)
            < 4 * math.sqrt(value * (1 - value) * (1 / 4000 + 1 / 20_000)) + 1e-12
        )


@pytest.mark.parametrize("name", ["word_insertion", "word_flip", "dalvi", "ara"])
def test_the_curve_of_an_attack_on_words_is_trusted(name):
    problem = words(n=300, n_words=20)
    posterior = fitted(problem)
    attacker = component("attacker", name)
    curve = security_curve(problem, posterior, attacker, threat(attacker), Streams(0))
    assert curve.verdict, curve.checks
    assert curve.rows["max_perturbation"].tolist() <= curve.rows["eps"].tolist()
    assert curve.rows["accuracy"].iloc[-1] < curve.rows["random_accuracy"].iloc[-1]


class Awaiting:
    """A defence that takes for spam what the attack is known to send, and nothing else: better off
    attacked."""

    def __init__(self, undefended, sent):
        self.undefended, self.sent = undefended, set(rows(sent))

    def predict(self, x, generator):
        expected = torch.tensor([row in self.sent for row in rows(x)])
        return Categorical(torch.stack([~expected, expected], -1).double()[None, :, None] * 9)


class Kind(WordInsertion):
    """The worst attack there is: it adds the words that make spam look most like spam."""

    def perturb(self, victim, x, y, rng, eps):
        base = victim.posterior.undefended

        class Opposite:
            def predict(self, x, generator):
                return Categorical(-base.predict(x, generator).logits)

        return super().perturb(Attacked(Opposite()), x, y, rng, eps)


def test_an_attack_that_knows_of_no_defence_is_judged_by_what_it_does_to_the_undefended():
    problem = words(n=300, n_words=8, seed=3)
    base = fitted(problem)
    attack = component("attacker", "word_insertion", against="undefended")
    x, y = problem.test.x, problem.test.y
    attacked = attack.perturb(Attacked(base), x, y, Streams(0), 2)
    posterior = Awaiting(base, attacked[y[:, 0] == 1])
    curve = security_curve(problem, posterior, attack, threat(attack, [0, 2]), Streams(0))
    row = curve.rows.iloc[-1]
    # which breaks no promise of the attack
    assert row["accuracy"] > curve.rows["accuracy"].iloc[0] + 0.1
    assert curve.verdict, curve.checks
    assert curve.checks["detail"].str.contains("of the undefended classifier").sum() == 2
    right = [
        (log_odds(base, z) > 0) == bool(label)
        for z, label in zip(rows(attacked), y[:, 0].tolist(), strict=True)
    ]
    assert row["undefended_accuracy"] == pytest.approx(sum(right) / len(right))
    knows = component("attacker", "word_insertion")
    knowing = security_curve(problem, posterior, knows, threat(knows, [0, 2]), Streams(0))
    assert "undefended_accuracy" not in knowing.rows
    kind = Kind(name="word_insertion", exact=2, against="undefended")
    checks = security_curve(
        problem, posterior, kind, threat(kind, [0, 2]), Streams(0)
    ).checks.set_index("check")["passed"]
    assert not checks["accuracy falls as ε grows"]
    assert not checks["the attack beats random signs of the same size"]


def test_sizes_are_whole_numbers_of_words():
    with pytest.raises(ValueError, match="whole numbers of changed words"):
        threat(component("attacker", "word_insertion"), [0, 0.5])
