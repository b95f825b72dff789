"""Randomised classification: the game's value by enumeration, the two regimes of Vorobeychik and
Li, and the attacker's best reply as found by the registered attack."""

import itertools

import numpy as np
import pytest
import torch
from support.small.small_problems import component
from support.small.small_spam import words

from components.attackers.attacked import Attacked
from components.games.equilibria.matrix_games import maximin
from components.inference.defences.randomised import attacked_error, best_mixture, error_patterns
from runner.execution.rng import Streams


def reachable_patterns(K, *mails):
    """Emails with attacks that cause these error patterns of the members [n, 2^K]."""
    out = torch.zeros(len(mails), 2**K, dtype=torch.bool)
    for i, patterns in enumerate(mails):
        for pattern in patterns:
            out[i, sum(2**k for k, wrong in enumerate(pattern) if wrong)] = True
    return out


def test_patterns_are_binary_digits_of_their_numbers():
    assert error_patterns(3).tolist() == [
        [float(c % 2), float(c // 2 % 2), float(c // 4)] for c in range(8)
    ]


def test_mixture_is_uniform_or_pure_in_extreme_cases():
    singly = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    clean = [(1, 0, 0)], [(0, 0, 0)]  # the first member errs on one innocent email of two
    targeted = reachable_patterns(3, *[singly] * 20, *clean)
    q = best_mixture(targeted, 3)
    assert q.tolist() == pytest.approx([1 / 3] * 3)  # although other members are better
    assert attacked_error(targeted, q) < attacked_error(targeted, torch.eye(3).double()[1]) - 0.5
    indiscriminate = reachable_patterns(3, *[[(1, 1, 1)]] * 20, *clean)
    assert float(best_mixture(indiscriminate, 3)[0]) == pytest.approx(0)


@pytest.mark.parametrize("seed", range(4))
def test_value_matches_game_over_all_attacks(seed):
    rng = np.random.default_rng(seed)
    every = list(itertools.product((0, 1), repeat=3))
    mails = [[every[c] for c in rng.choice(8, size=3, replace=False)] for _ in range(3)]
    columns = [np.mean(attacks, axis=0) for attacks in itertools.product(*mails)]  # 27 attacks
    value = -float(maximin(-torch.tensor(np.stack(columns, 1))).value)
    attainable = reachable_patterns(3, *mails)
    q = best_mixture(attainable, 3)
    assert q.sum() == pytest.approx(1)
    assert attacked_error(attainable, q) == pytest.approx(value)


def fit_mixture(problem, **keys):
    options = {"members": 3, "mails": 1000, "changes": 2} | keys
    method = component("inference", "randomised", **options)
    rng = Streams(0)
    state = method.init(component("model", "naive_bayes").build(problem, rng), problem, rng)
    state, info = method.step(state, problem.train, rng)
    assert method.step(state, problem.train, rng) == (state, {})
    return method, state, info


def test_recorded_best_reply_matches_attack():
    """Each mixture's error under word_insertion of its votes, over the training emails."""
    problem = words(n=150, n_words=8, seed=2)
    attack = component("attacker", "word_insertion", against="undefended", exact=1)
    x = problem.train.x
    y = problem.train.y
    errors = {}
    for mixture in ("optimal", "uniform", "single"):
        method, state, info = fit_mixture(problem, mixture=mixture, changes=1)
        posterior = method.posterior(state)
        sent = attack.perturb(Attacked(posterior, (0.0, 1.0)), x, y, Streams(1), 1.0)
        votes = posterior.undefended.predict(sent, Streams(0).evaluation).probs[:, 0]
        expected = float(1 - votes.gather(1, y).mean())
        assert float(info["attacked_error"]) == pytest.approx(expected, abs=1e-5)
        assert float(info[f"attacked_error_{mixture}"]) == float(info["attacked_error"])
        errors[mixture] = expected
    assert errors["optimal"] <= min(errors.values()) + 1e-5
    assert errors["optimal"] < min(errors["single"], errors["uniform"]) - 0.02
    # a broken defender that counts its errors before the attack chooses another mixture
    unattacked = posterior.members(x)[..., 0, :].argmax(-1) != y[:, 0]
    best_clean = torch.eye(3).double()[int(unattacked.double().mean(1).argmin())]
    attainable = method.attack(posterior, problem.train)
    assert attacked_error(attainable, best_clean) > errors["optimal"] + 0.01


def test_members_are_drawn_by_their_weights():
    method, state, _ = fit_mixture(words(n=60), mixture="uniform")
    posterior = method.posterior(state)
    x = words(n=60).test.x[:1].expand(3000, -1)
    each = posterior.members(x[:1])[:, 0, 0]
    draws = posterior.predict(x, Streams(0).evaluation).log_probs[:, 0]
    shares = [(draws == row).all(1).double().mean() for row in each]
    assert [float(s) for s in shares] == pytest.approx([1 / 3] * 3, abs=4 * (2 / 9 / 3000) ** 0.5)
    assert torch.equal(state.fitted["masks"].sum(1), torch.full((3,), 3.0).double())
