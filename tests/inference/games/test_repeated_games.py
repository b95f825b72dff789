"""Values of repeated games, compared with a sum over time and with simulated games."""

import torch
from support.runs.configured import F64, generator, normal

from components.games.agents.opponent_shaping import Repeated

GAMMA = 0.9


def random_game():
    """4 states, 2 actions against 3, and two pairs of policies."""
    g = generator(0)
    logits, other = normal(g, 2, 4, 2, 3)
    game = Repeated(logits, other, torch.randint(0, 4, (4, 2, 3), generator=g), start=1)
    mine, theirs = (normal(g, 2, 4, n).softmax(-1) for n in (2, 3))
    return game, mine, theirs


def test_values_match_discounted_sums():
    """V(s) = Σ_t γ^t E[r_t], by iteration."""
    game, mine, theirs = random_game()
    actual = game.values(mine, theirs, GAMMA)
    for values, gains in zip(actual, (game.own, game.other), strict=True):
        for r in range(2):
            pair = mine[r][:, :, None] * theirs[r][:, None, :]
            value = torch.zeros(4, dtype=F64)
            for _ in range(400):  # V ← r + γ P V
                value = (pair * (gains + GAMMA * value[game.onward])).sum((1, 2))
            torch.testing.assert_close(values[r], value)
