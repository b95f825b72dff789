"""REINFORCE: its estimate compared with the exact gradient and a literal version, in games with and
without an end."""

from __future__ import annotations

import pytest
import torch
from support.runs.configured import F64, component, double, draw_normal
from support.small.small_games import game_of, play, play_episodes
from torch.testing import assert_close

from components.games.agents.policy_gradient import PolicyGradient
from runner.execution.rng import Streams

OPPONENT_POLICY = [0.6, 0.4]


def gradient(**changes):
    return component("inference", "policy_gradient", **changes)


def exact(game, theta, gamma, rounds):
    """∇ E[Σ_t γ^t r_t] over the given rounds from the start, for logits θ [S, A], against the
    policy OPPONENT_POLICY."""
    rules = game.environment
    theta = theta.clone().requires_grad_()
    pair = theta.softmax(-1)[:, :, None] * double(OPPONENT_POLICY)
    reward = (pair * rules.reward_a).sum((1, 2))
    moves = torch.zeros(5, 5, dtype=F64).scatter_add(
        1, rules.transition.flatten(1), pair.flatten(1)
    )
    occupancy = torch.eye(5, dtype=F64)[rules.start]
    total = torch.zeros((), dtype=F64)
    for t in range(rounds):
        total = total + gamma**t * (occupancy @ reward)
        occupancy = occupancy @ moves
    return torch.autograd.grad(total, theta)[0]


@pytest.mark.parametrize("baseline", ["none", "mean", "by_state"])
def test_policy_gradient_is_unbiased(baseline):
    """z of each component over 40,000 episodes of three rounds; the gradient of the undiscounted
    reward differs detectably."""
    R = 40_000
    rounds = 3
    gamma = 0.7
    game = game_of(
        "iterated_matrix",
        R,
        component("attacker", "fixed_policy", plays=OPPONENT_POLICY),
        episodes=rounds,
    )
    theta = 0.7 * draw_normal(5, 2, seed=1)
    agent = gradient(lr=1.0, gamma=gamma, rounds=rounds, baseline=baseline)
    rng = Streams(4)
    state = agent.init(component("model", "q_table").build(game, rng), game, rng)
    state.mind.theta += theta
    if baseline == "mean":
        state.mind.mean += 2.5
    if baseline == "by_state":
        state.mind.values.values += 3.0
    state = play_episodes(agent, game, rng, state, 0, rounds)
    step = state.mind.theta - theta

    def z(exactly):
        return ((step.mean(0) - exactly) / (step.std(0) / R**0.5)).abs().max()

    assert z(exact(game, theta, gamma, rounds)) < 4
    assert z(exact(game, theta, 1.0, rounds)) > 8


class Noted(PolicyGradient):
    """A policy gradient that records its moves."""

    def learn(self, mind, seen, episode):
        NOTED.append((episode, seen))
        super().learn(mind, seen, episode)


NOTED: list = []


def literal(game, agent, replicate):
    """θ [F, A] of one replicate from the recorded moves, with the sum of all later rewards of an
    episode."""
    rules = game.environment
    A = game.n_actions
    features = game.n_states if game.numbered else rules.features(NOTED[0][1].s).shape[1]
    theta = torch.zeros(features, A, dtype=F64)
    mean = 0.0
    episodes = {}
    for number, (episode, move) in enumerate(NOTED):
        if move.live is None or move.live[replicate]:
            episodes.setdefault(number // agent.rounds if rules.continuing else episode, []).append(
                move
            )
    for moves in episodes.values():
        step = torch.zeros_like(theta)
        scores = []
        for move in moves:
            phi = rules.features(move.s)[replicate]
            p = (phi @ theta).softmax(-1)
            p[move.a[replicate]] -= 1
            scores.append(-torch.outer(phi, p))
        for i, score in enumerate(scores):
            for t in range(i, len(moves)):
                step += agent.gamma**t * (float(moves[t].r_a[replicate]) - mean) * score
        theta = theta + agent.lr * step
        if agent.baseline == "mean":
            reward = sum(float(move.r_a[replicate]) for move in moves) / len(moves)
            mean += agent.baseline_rate * (reward - mean)
    return theta


def check_literally(game, agent, model="q_table"):
    """Play, and compare θ of each replicate; θ [R, F, A]."""
    NOTED.clear()
    theta = play(game, Noted(**dict(agent)), model=model)[0].mind.theta
    exact = torch.stack([literal(game, agent, r) for r in range(game.replicates)])
    assert_close(theta, exact, rtol=1e-9, atol=1e-12)
    return theta


@pytest.mark.parametrize(
    ("name", "model", "changes"),
    [
        ("friend_or_foe_grid", "q_table", {"episodes": 4, "horizon": 6}),
        ("coin_game", "q_linear", {"episodes": 3, "moves": 4, "size": 3}),
    ],
)
def test_episode_updates_match_equation(name, model, changes):
    """The grid ends earlier in some replicates; the coin game has features instead of numbered
    states."""
    check_literally(
        game_of(name, 3, **changes), gradient(baseline="mean", baseline_rate=0.5), model
    )


@pytest.mark.parametrize("rounds", [1, 4])
def test_continuing_rounds_match_equation(rounds):
    """One round and no baseline: r ∇ log π of the move, as in the released code of the data sharing
    games."""
    opponent = component("attacker", "tit_for_tat", errs=0.2)
    game = game_of("iterated_matrix", 3, opponent, episodes=12)
    state_of_run = check_literally(game, gradient(rounds=rounds, baseline="none", lr=0.1))
    if rounds == 1:
        theta = torch.zeros(5, 2, dtype=F64)
        for _, history in NOTED:
            s = int(history.s[0])
            a = int(history.a[0])
            p = theta[int(history.s[0])].softmax(-1)
            for other in range(2):
                theta[s, other] += 0.1 * float(history.r_a[0]) * ((other == a) - float(p[other]))
        assert_close(state_of_run[0], theta)
