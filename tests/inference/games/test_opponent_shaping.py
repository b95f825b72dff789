"""LOLA: its gradient compared with finite differences, the model of the opponent, and the resulting
policies."""

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator, normal
from support.small.small_games import assert_near, game_of, play
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.games.agents.opponent_shaping import OpponentShaping, Repeated

SWAPPED = [0, 2, 1, 3, 4]  # states (a, b) from the opponent's side


def shaping(**changes):
    return component("inference", "opponent_shaping", **changes)


def play_itself(replicates, rounds, game=None, **changes):
    agent = shaping(opponent="known", **changes)
    opponent = component("attacker", "learner", agent=agent)
    return play(
        game_of("iterated_matrix", replicates, opponent, episodes=rounds, **(game or {})), agent
    )


def make_game():
    """A game with unequal rewards and 5 states; logits of 2 and of 3 actions [1, 5, ·]."""
    g = generator(5)
    logits, other = normal(g, 2, 5, 2, 3)
    game = Repeated(logits, other, torch.randint(0, 5, (5, 2, 3), generator=g), start=4)
    mine, theirs = (normal(g, 1, 5, n) for n in (2, 3))
    return game, mine, theirs


def slope(f, x, h=1e-5):
    """∇f by central differences, f a number or a tensor: [*x.shape, *f.shape]."""
    results = []
    for i in range(x.numel()):
        e = torch.zeros(x.numel(), dtype=x.dtype)
        e[i] = h
        results.append((f(x + e.view_as(x)) - f(x - e.view_as(x))) / (2 * h))
    return torch.stack(results).view(*x.shape, *results[0].shape)


@pytest.mark.parametrize("lookahead", [0.0, 0.4])
@pytest.mark.parametrize("form", ["full", "taylor"])
def test_gradient_includes_opponent_step(form, lookahead):
    agent = shaping(form=form, lookahead=lookahead, gamma=0.8)
    game, mine, theirs = make_game()

    def V(which, x, y):
        return game.values(x.softmax(-1), y.softmax(-1), 0.8)[which][0, game.start]

    def opponent_step(x):
        return slope(lambda y: V(1, x, y), theirs, 1e-4)  # ∇_{θ_B} V_B

    if form == "full":
        expected = slope(lambda x: V(0, x, theirs + lookahead * opponent_step(x)), mine, 1e-4)
    else:
        turned = slope(lambda y: V(0, mine, y), theirs)  # ∇_{θ_B} V_A
        mixed = slope(opponent_step, mine, 1e-4)  # ∇_{θ_A} ∇_{θ_B} V_B
        expected = slope(lambda x: V(0, x, theirs), mine) + lookahead * (mixed * turned).sum(
            (-3, -2, -1)
        )
    assert_close(agent.gradient(game, mine, theirs), expected, rtol=1e-4, atol=1e-5)


def test_both_players_look_ahead_before_learning():
    """With equal logits in a symmetric game, a player that used the opponent's step first would
    have an advantage."""
    state, _ = play_itself(2, 6, init_sd=0.0)
    agent = state.mind.theta
    opponent = state.standing.adversary.mind.theta
    assert (agent - 0.0).abs().max() > 0.1
    assert_close(agent, opponent[:, SWAPPED])


def test_opponent_sees_mirrored_game():
    rewards = [[[1.0, -2.0], [0.5, 3.0], [2.0, 0.0]], [[-1.0, 4.0], [0.0, 1.0], [3.0, -3.0]]]
    state, posterior = play_itself(3, 4, {"bimatrix": rewards})
    agent = state.mind
    opponent = state.standing.adversary.mind
    assert opponent.theta.shape == (3, 7, 3)
    assert_close(opponent.game.own[0], torch.tensor(rewards)[..., 1].double().mT)
    for mine, theirs in zip(
        agent.game.values(agent.theta.softmax(-1), opponent.theta.softmax(-1), 0.9),
        reversed(opponent.game.values(opponent.theta.softmax(-1), agent.theta.softmax(-1), 0.9)),
        strict=True,
    ):
        assert_close(mine, theirs)
    # Values of the agent: Q_A(s, a) = E_b[r + γ V_A(s')], and (1 − γ) V_A at the first state of the
    # episode.
    worth = agent.game.values(agent.theta.softmax(-1), agent.theirs, 0.96)[0]
    ahead = worth[:, :6].view(3, 2, 3)  # V_A(s') [R, A, B]
    q = torch.tensor(rewards)[..., 0].double() + 0.96 * ahead
    forecast = agent.theirs[torch.arange(3), posterior.s]
    assert_near(posterior.values, torch.einsum("rab,rb->ra", q, forecast))
    assert_close(posterior.beliefs["belief/value"], 0.04 * worth[:, 6])


def test_opponent_policy_is_estimated_by_counts():
    noted = []

    class Noted(OpponentShaping):
        def learn(self, mind, seen, episode):
            noted.append((seen.s, seen.b))
            super().learn(mind, seen, episode)

    opponent = component("attacker", "tit_for_tat", errs=0.3)
    agent = Noted(**dict(shaping(forget=0.5, prior=2.0)))
    state, _ = play(game_of("iterated_matrix", 2, opponent, episodes=30), agent)
    for r in range(2):
        counts = np.full((5, 2), 2.0)
        for s, b in noted:
            counts[s[r]] *= 0.5
            counts[s[r], b[r]] += 1
        assert_near(state.mind.theirs[r], counts / counts.sum(1, keepdims=True))


def test_shapers_cooperate_and_naive_learners_defect():
    """(1 − γ) V near R = 5, and near P = 1; tit for tat cooperates after (·, C) and defects after
    (·, D)."""
    state, posterior = play_itself(20, 100)
    assert (posterior.beliefs["belief/value"] > 4.5).double().mean() >= 0.8
    assert (posterior.rewards[:, -50:].mean(1) > 4).double().mean() >= 0.6
    c = state.mind.theta.softmax(-1)[..., 0].mean(0)
    assert c[0] > 0.9
    assert c[2] > c[1]
    _, posterior = play_itself(20, 60, lookahead=0.0)
    assert (posterior.beliefs["belief/value"] < 2).double().mean() >= 0.8


@pytest.mark.slow
def test_published_game_has_published_return():
    """T, R, P, S = 0, −1, −2, −3 with the published form: our mean per round is within 4 SE of
    −1.06 (Foerster et al., exact LOLA)."""
    dilemma = {"T": 0.0, "R": -1.0, "P": -2.0, "S": -3.0}
    _, posterior = play_itself(100, 300, dilemma, form="taylor", lr=0.1, lookahead=1.0)
    worth = posterior.beliefs["belief/value"]
    assert abs(float(worth.mean()) + 1.06) < 4 * float(worth.std()) / 10


@pytest.mark.parametrize("name", ["friend_or_foe_grid", "coin_game", "blotto"])
def test_games_without_repeated_tables_are_refused(name):
    with pytest.raises(ConfigMismatchError, match=r"inference=.* such as dataset=iterated_matrix"):
        play(game_of(name, 2), shaping(), model="q_linear")


def test_opponent_without_known_policy_is_refused():
    agent = shaping(opponent="known")
    message = r"inference.opponent=known .*does not reveal its policy; use estimated"
    with pytest.raises(ConfigMismatchError, match=message):
        play(game_of("iterated_matrix", 2, component("attacker", "tit_for_tat")), agent)
    play(game_of("iterated_matrix", 2, episodes=2), agent)
