import torch
from support.runs.configured import double, generator
from torch.testing import assert_close

from components.games.agents.policies import draw_action, probabilities

VALUES = double([[1.0, 3.0, 3.0], [2.0, 1.0, 0.0]])


def test_epsilon_greedy_shares_between_ties():
    p = probabilities(VALUES, "epsilon_greedy", 0.3, 1.0)
    assert_close(p, double([[0.1, 0.45, 0.45], [0.8, 0.1, 0.1]]))


def test_epsilon_greedy_selects_first_tie_on_request():
    p = probabilities(VALUES, "epsilon_greedy", 0.3, 1.0, "first")
    assert_close(p, double([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]]))
    p = probabilities(VALUES, "epsilon_greedy", 0.3, 1.0, "last")
    assert_close(p, double([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]))


def test_softmax_matches_formula():
    p = probabilities(VALUES, "softmax", 0.3, 2.0)
    expected = (VALUES / 2).exp()
    assert_close(p, expected / expected.sum(1, keepdim=True))
    cold = probabilities(VALUES[1:], "softmax", 0.0, 1e-3)
    assert_close(cold, probabilities(VALUES[1:], "epsilon_greedy", 0.0, 1.0))


def test_actions_have_their_probabilities():
    n = 40_000
    p = double([0.2, 0.5, 0.3])
    a = draw_action(p.expand(n, 3), generator(0))
    share = torch.bincount(a, minlength=3) / n
    z = (share - p) / (p * (1 - p) / n).sqrt()
    assert (z.abs() < 4).all()


def test_zero_probability_action_is_never_drawn():
    p = double([[0.0, 1.0, 0.0]]).expand(5000, 3)
    assert (draw_action(p, generator(0)) == 1).all()
