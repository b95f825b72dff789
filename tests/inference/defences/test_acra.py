"""ACRA and Dalvi's classifier compared with sums over all possible emails."""

import math

import pytest
import torch
from support.runs.configured import double, generator
from support.small.small_problems import component, train
from support.small.small_spam import accuracy, log_joint, log_odds, neighbours, rows, words

from components.attackers.attacked import Attacked
from components.attackers.words.beliefs import (
    attack_frequencies,
    estimate_frequency,
    frequency_within,
    required_draws,
)
from runner.execution.rng import Streams


def posterior(name, problem, **options):
    method = component("inference", name, **options)
    state, _ = train(method, component("model", "naive_bayes"), problem, 1)
    return method.posterior(state)


def worst_attack(base, x, most, direction):
    """a(x) = argmin_z p(y_1|z)."""
    return min(neighbours(x, most, direction), key=lambda z: log_odds(base, z))


def cheapest(base, x, most, direction, insertion=1.0, removal=1.0):
    """a(x) of (3.4): the cheapest z that passes, and among equally cheap ones the least malicious;
    x if no z passes or none is needed."""
    passing = [z for z in neighbours(x, most, direction) if log_odds(base, z) <= 0]
    if log_odds(base, x) <= 0 or not passing:
        return x

    def cost(z):
        return sum(0 if a == b else insertion if b else removal for a, b in zip(x, z, strict=True))

    return min(passing, key=lambda z: (round(cost(z), 9), log_odds(base, z)))


def brute(base, seen, p, most, direction, u=((1, 0), (0, 1))):
    """(3.9) summed over all 2^D emails: the two terms of the expected utility of predicting 1, and
    of predicting 0."""
    total = 0.0
    every = neighbours((0,) * len(seen), len(seen), "insertion")
    for x in every:
        if seen in neighbours(x, most, direction):
            total += p(x, seen) * math.exp(log_joint(base, x, 1))
    spam = total
    ham = math.exp(log_joint(base, seen, 0))
    return u[1][1] * spam + u[1][0] * ham, u[0][1] * spam + u[0][0] * ham


@pytest.mark.parametrize("direction", ["insertion", "flip"])
@pytest.mark.parametrize("u", [((1, 0), (0, 1)), ((1.0, 0.2), (-0.5, 0.9))])
def test_known_attacks_are_inverted_by_equation_3_5(direction, u):
    problem = words(n_words=5, seed=3)
    options = {"changes": 2, "utilities": [list(row) for row in u]}
    free = {"removal_cost": 0.8 if direction == "flip" else None}
    for attack, a in (("least_malicious", worst_attack), ("minimum_cost", cheapest)):
        aware = posterior("dalvi", problem, attack=attack, **options, **free)
        # its odds include the utilities, as the attacker's problem requires
        base = aware.undefended
        plain = posterior("dalvi", problem).undefended
        every = neighbours((0,) * 5, 5, "insertion")
        extra = {"removal": 0.8} if attack == "minimum_cost" else {}
        sent = {x: a(base, x, 2, direction, **extra) for x in every}
        log_probs = aware.predict(double(every), None).log_probs[:, 0]
        for b, observed in enumerate(every):
            yes, no = brute(plain, observed, lambda x, z: float(sent[x] == z), 2, direction, u)  # noqa: B023
            assert bool(log_probs[b, 1] > log_probs[b, 0]) == (yes > no)
            if u[0] == (1, 0):
                assert log_probs[b, 1].exp() == pytest.approx(yes / (yes + no), abs=1e-12)


@pytest.mark.parametrize("name", ["dalvi", "acra"])
def test_idle_attacker_leaves_share_of_spam_unchanged(name):
    """The sum over origins uses p_C(x'|x) = (1 − q) 1[a(x) = x'] + q 1[x = x']."""
    problem = words(n_words=5, seed=3)
    q = 0.3
    informed = (
        {"attack": "least_malicious"} if name == "dalvi" else {"variance": 0.0, "candidates": 32}
    )
    aware = posterior(name, problem, changes=2, idle=q, **informed)
    every = neighbours((0,) * 5, 5, "insertion")
    sent = {x: worst_attack(aware.undefended, x, 2, "insertion") for x in every}
    probabilities = aware.predict(double(every), torch.Generator()).probs[:, 0, 1]
    for b, observed in enumerate(every):
        yes, no = brute(
            aware.undefended,
            observed,
            lambda x, z: (1 - q) * float(sent[x] == z) + q * float(x == z),
            2,
            "insertion",
        )
        assert float(probabilities[b]) == pytest.approx(yes / (yes + no), abs=1e-7)


@pytest.mark.parametrize("direction", ["insertion", "flip"])
def test_acra_tends_to_dalvi_for_known_attacker(direction):
    problem = words(n_words=5, seed=4)
    every = double(neighbours((0,) * 5, 5, "insertion"))
    removal = None if direction == "insertion" else 1.0
    informed = posterior("dalvi", problem, attack="least_malicious", removal_cost=removal)
    goal = informed.predict(every, None).probs[:, 0, 1]
    gaps = []
    for variance in (1.0, 0.1, 1e-3, 1e-9, 0.0):
        aware = posterior(
            "acra", problem, direction=direction, variance=variance, candidates=32, draws=200
        )
        probabilities = aware.predict(every, generator(0)).probs[:, 0, 1]
        gaps.append(float((probabilities - goal).abs().max()))
    assert gaps[0] > 0.05
    assert gaps[-2] < 1e-9
    assert gaps[-1] < 1e-9
    # another X' leads to another classifier
    mutant = posterior("acra", problem, direction=direction, variance=0.0, changes=1)
    assert (mutant.predict(every, torch.Generator()).probs[:, 0, 1] - goal).abs().max() > 0.05


def test_algorithm_3_1_matches_ara_frequencies():
    """Σ_x p̂(x'|x, y_1) p(x|y_1) with p̂ from other draws agrees within the error of the draws."""
    problem = words(n_words=5, seed=4)
    n = 4000
    aware = posterior("acra", problem, variance=1.0, draws=n, candidates=1000)
    ara = component("attacker", "ara", variance=1.0)
    base = aware.undefended
    every = neighbours((0,) * 5, 5, "insertion")
    from components.attackers.words.changes import change_sets, flip_words

    sets = change_sets(5, 2)
    table = {}
    x = double(every)
    p = ara.frequencies(Attacked(base), x, 2, n, generator(5))
    for b, row in enumerate(every):
        ends = rows(flip_words(x[b : b + 1].expand(len(sets), -1), sets))
        table |= {(row, z): float(v) for z, v in zip(ends, p[b], strict=True) if v > 0}
    probabilities = aware.predict(x, generator(6)).probs[:, 0, 1]
    for b, observed in enumerate(every):
        yes, no = brute(base, observed, lambda a, z: table.get((a, z), 0.0), 2, "insertion")
        assert float(probabilities[b]) == pytest.approx(yes / (yes + no), abs=0.04)


def test_attacked_spam_is_recognised():
    problem = words(n=300, n_words=10, seed=1)
    x = problem.test.x
    y = problem.test.y
    aware = posterior("acra", problem, draws=30, candidates=16)
    attack = component("attacker", "word_insertion", against="undefended")
    tainted = attack.perturb(Attacked(aware), x, y, Streams(0), 2)
    base = component("attacker", "word_insertion").perturb(
        Attacked(aware.undefended), x, y, Streams(0), 2
    )
    assert torch.equal(tainted, base)  # the attacker without knowledge of the defence

    assert accuracy(aware, tainted, y) > accuracy(aware.undefended, tainted, y) + 0.1


def test_pilot_sets_number_of_draws():
    """K = K_0 2^j is the least with p(1 − p)/K ≤ precision², p = (hits + 1)/(K_0 + 2)."""
    hits = torch.tensor([0, 1, 5, 10, 19, 20])
    for precision in (0.2, 0.05, 0.01):
        number = required_draws(hits / 20, 20, precision)
        for count, n in zip(hits.tolist(), number.tolist(), strict=True):
            p = (count + 1) / 22
            needed = 20
            while p * (1 - p) / needed > precision**2:
                needed *= 2
            assert n == needed


def test_frequency_is_unbiased_with_requested_precision():
    """For 200 estimates of six frequencies, the spread is at most the precision, unlike with only
    the pilot's draws, and the mean equals that of many draws."""
    odds = torch.tensor([[0.3, 0.0, -0.2, 0.4, 1.0, 1.5]]).double().expand(6, -1)
    which = torch.arange(6)
    g = generator(0)
    exact = attack_frequencies(odds[:1], 0.5, 200_000, g)[0]
    rows = odds.repeat(200, 1)
    each = frequency_within(which.repeat(200), rows, 0.5, 16, 0.03, g).view(200, 6)
    assert each.std(0).max() < 0.03 * 1.15
    error = each.std(0) / 200**0.5 + (exact * (1 - exact) / 200_000).sqrt()
    assert ((each.mean(0) - exact).abs() < 4 * error).all()
    pilot = estimate_frequency(which.repeat(200), rows, 0.5, 16, g).view(200, 6)
    assert pilot.std(0).max() > 0.06
