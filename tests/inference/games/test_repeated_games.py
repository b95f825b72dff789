"""Values of repeated games against a sum over time, and against games that were played."""

from __future__ import annotations

import torch
from support.runs.configured import F64, generator
from support.small.small_games import game_of

from components.games.agents.opponent_shaping import Repeated

GAMMA = 0.9


def random_game(seed: int = 0) -> tuple[Repeated, torch.Tensor, torch.Tensor]:
    """4 states, 2 actions against 3, and two pairs of policies."""
    g = generator(seed)
    own, other = torch.randn(2, 4, 2, 3, generator=g, dtype=F64)
    game = Repeated(own, other, torch.randint(0, 4, (4, 2, 3), generator=g), start=1)
    mine, theirs = (torch.randn(2, 4, n, generator=g, dtype=F64).softmax(-1) for n in (2, 3))
    return game, mine, theirs


def test_values_are_sums_over_time():
    """V(s) = Σ_t γ^t E[r_t], by iteration."""
    game, mine, theirs = random_game()
    found = game.values(mine, theirs, GAMMA)
    for values, gains in zip(found, (game.own, game.other), strict=True):
        for r in range(2):
            pair = mine[r][:, :, None] * theirs[r][:, None, :]
            value = torch.zeros(4, dtype=F64)
            for _ in range(400):  # V ← r + γ P V
                value = (pair * (gains + GAMMA * value[game.onward])).sum((1, 2))
            torch.testing.assert_close(values[r], value)


def test_values_are_what_is_earned():
    """60 rounds of the iterated prisoner's dilemma by its own rules, 4,000 times: z < 4; his and
    hers told apart."""
    R, T = 4_000, 60
    rules = game_of("iterated_matrix", R).environment
    game = Repeated(rules.reward_a, rules.reward_b[..., 0], rules.transition, rules.start)
    g = generator(2)
    cooperate = torch.tensor([[0.9, 0.2, 0.6, 0.3, 0.7], [0.5, 0.8, 0.1, 0.4, 0.2]], dtype=F64)
    policies = torch.stack([cooperate, 1 - cooperate], -1)
    s, earned = rules.reset(R, g), torch.zeros(2, R, dtype=F64)
    for t in range(T):
        a, b = (torch.rand(2, R, generator=g, dtype=F64) >= cooperate[:, s]).long()
        outcome = rules.step(s, a, b.unsqueeze(1), g)
        earned += GAMMA**t * torch.stack([outcome.r_a, outcome.r_b[:, 0]])
        s = outcome.s_next
    exact = torch.stack(game.values(policies[0], policies[1], GAMMA))[:, rules.start]
    # what 60 rounds leave out is a thirtieth of an SE
    z = (earned.mean(1) - exact) / (earned.std(1) / R**0.5)
    assert z.abs().max() < 4
    assert abs(float(earned.mean(1)[0] - exact[1])) > 10 * float(earned.std(1)[0] / R**0.5)
