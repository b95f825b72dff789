"""Values against linear programmes and known games; equilibria of 10⁴ random games, from which no one gains by turning away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.maths.matrix_games import _programme, equilibria, gain, maximin, worst_case

ROCK = [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]


def test_two_by_two_is_the_linear_programme():
    payoff = torch.randint(
        -3, 4, (500, 2, 2), generator=torch.Generator().manual_seed(0)
    ).double()  # many ties among them
    found = maximin(payoff)
    for matrix, value, x in zip(payoff.numpy(), found.value.tolist(), found.strategy.numpy(), strict=True):
        assert value == pytest.approx(_programme(matrix)[0], abs=1e-9)
        assert (x @ matrix).min() == pytest.approx(value, abs=1e-9)
        assert x.sum() == pytest.approx(1)
        assert (x >= 0).all()


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 2)])
def test_a_strategy_is_worth_its_value_and_the_other_has_one_that_allows_no_more(shape):
    payoff = torch.randn(20, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    hers, his = maximin(payoff), maximin(-payoff.mT)
    torch.testing.assert_close((hers.strategy.unsqueeze(-2) @ payoff).squeeze(-2).amin(-1), hers.value)
    torch.testing.assert_close(hers.value, -his.value)  # von Neumann


def test_known_games():
    value, x = maximin(torch.tensor(ROCK).double())
    assert float(value) == pytest.approx(0, abs=1e-9)
    assert x.tolist() == pytest.approx([1 / 3] * 3)
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    (one,) = equilibria(pennies, -pennies)
    assert one.x.tolist() == one.y.tolist() == [0.5, 0.5]
    dilemma = np.array([[5.0, 0.0], [6.0, 1.0]])
    (one,) = equilibria(dilemma, dilemma.T)
    assert one.pure
    assert one.x.tolist() == one.y.tolist() == [0, 1]
    hunt = np.array([[5.0, 0.0], [4.0, 1.0]])  # R > T > P > S: both pure ones, and x = (P − S)/(R − S − T + P)
    pure, other, mixed = equilibria(hunt, hunt.T)
    assert [one.pure for one in (pure, other, mixed)] == [True, True, False]
    assert mixed.x.tolist() == pytest.approx([0.5, 0.5])
    (one,) = equilibria(np.array(ROCK), -np.array(ROCK))
    assert one.x.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(("shape", "games"), [((2, 2), 10_000), ((3, 3), 300), ((2, 4), 300)])
def test_equilibria_of_random_games_are_equilibria_odd_in_number_and_no_pure_one_is_missed(shape, games):
    rng = np.random.default_rng(0)
    for _ in range(games):
        r_a, r_b = rng.normal(size=(2, *shape))
        found = equilibria(r_a, r_b)
        assert len(found) % 2 == 1  # Wilson (1971), of games that are not degenerate
        assert max(gain(r_a, r_b, x, y) for x, y in found) < 1e-9
        pure = {(int(x.argmax()), int(y.argmax())) for x, y in found if x.max() == 1}
        best = (r_a == r_a.max(0)) & (r_b == r_b.max(1, keepdims=True))
        assert pure == set(zip(*np.nonzero(best), strict=True))


def test_worst_case_by_hand():
    """Two states: 0 is matching pennies and leads to 1, which pays 3 whatever is done, and then ends."""
    reward = torch.tensor([[[1.0, -1.0], [-1.0, 1.0]], [[3.0, 3.0], [3.0, 3.0]]]).double()
    onward = torch.ones(2, 2, 2, dtype=torch.long)
    always_heads = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double()
    assert worst_case(reward, onward, None, None, 1).tolist() == [0, 3]
    assert worst_case(reward, onward, None, None, 2).tolist() == [3, 6]
    assert worst_case(reward, onward, None, always_heads, 2).tolist() == [2, 6]
    assert worst_case(reward, onward, torch.tensor([False, True]), always_heads, 2).tolist() == [-1, 3]
    both = torch.stack([always_heads, torch.full((2, 2), 0.5).double()])
    assert worst_case(reward, onward, None, both, 1).tolist() == [[-1, 3], [0, 3]]
