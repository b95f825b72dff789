"""Values against linear programmes and known games; equilibria of 10⁴ random games, from which no
one gains by turning away."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.runs.configured import generator
from support.small.small_games import programme

from components.games.equilibria.bimatrix import equilibrium, mixtures, sizes
from components.games.equilibria.matrix_games import equilibria, gain, maximin, worst_case

ROCK = [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("shape", "games"), [((2, 2), 400), ((3, 3), 200), ((4, 3), 100), ((6, 9), 40), ((2, 7), 50)]
)
def test_it_is_the_linear_programme(shape, games):
    payoff = torch.randint(
        -3, 4, (games, *shape), generator=generator(0)
    ).double()  # many ties among them
    found = maximin(payoff)
    for matrix, value, x in zip(
        payoff.numpy(), found.value.tolist(), found.strategy.numpy(), strict=True
    ):
        assert value == pytest.approx(programme(matrix)[0], abs=1e-9)
        assert (x @ matrix).min() == pytest.approx(value, abs=1e-9)
        assert x.sum() == pytest.approx(1)
        assert (x >= 0).all()


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (4, 3)])
def test_the_best_of_all_mixtures_that_make_him_indifferent_is_the_value(shape):
    """Shapley and Snow (1950): one of the square parts of the matrix holds it."""
    payoff = torch.randn(100, *shape, generator=generator(2), dtype=torch.float64)
    x = mixtures(payoff)
    assert x.shape[1] == len(sizes(*shape))
    torch.testing.assert_close(x.sum(-1), torch.ones_like(x[..., 0]))
    least = (x @ payoff).amin(-1)
    torch.testing.assert_close(least.amax(-1), maximin(payoff).value)


def test_pure_actions_that_are_as_safe_share():
    payoff = torch.tensor(
        [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 2.0]], [[0.0, 3.0], [1.0, 2.0]]]
    ).double()
    assert maximin(payoff).strategy.tolist() == [[0.5, 0.5], [0.5, 0.5], [0, 1]]
    assert maximin(torch.zeros(3, 4)).strategy.tolist() == pytest.approx([1 / 3] * 3)
    assert maximin(torch.tensor([[1.0], [4.0], [4.0]])) == (
        torch.tensor(4.0),
        pytest.approx([0, 0.5, 0.5]),
    )


def test_one_game_is_solved_as_many_are():
    payoff = torch.randn(30, 4, 4, generator=generator(3), dtype=torch.float64)
    found = maximin(payoff)
    for i, matrix in enumerate(payoff):
        one = maximin(matrix)
        assert torch.equal(one.value, found.value[i])
        assert torch.equal(one.strategy, found.strategy[i])


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 2)])
def test_a_strategy_is_worth_its_value_and_the_other_has_one_that_allows_no_more(shape):
    payoff = torch.randn(20, *shape, generator=generator(1), dtype=torch.float64)
    hers, his = maximin(payoff), maximin(-payoff.mT)
    torch.testing.assert_close(
        (hers.strategy.unsqueeze(-2) @ payoff).squeeze(-2).amin(-1), hers.value
    )
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
    # R > T > P > S: both pure ones, and x = (P − S)/(R − S − T + P)
    hunt = np.array([[5.0, 0.0], [4.0, 1.0]])
    pure, other, mixed = equilibria(hunt, hunt.T)
    assert [one.pure for one in (pure, other, mixed)] == [True, True, False]
    assert mixed.x.tolist() == pytest.approx([0.5, 0.5])
    (one,) = equilibria(np.array(ROCK), -np.array(ROCK))
    assert one.x.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(("shape", "games"), [((2, 2), 10_000), ((3, 3), 300), ((2, 4), 300)])
def test_equilibria_of_random_games_are_equilibria_odd_in_number_and_no_pure_one_is_missed(
    shape, games
):
    rng = np.random.default_rng(0)
    for _ in range(games):
        r_a, r_b = rng.normal(size=(2, *shape))
        found = equilibria(r_a, r_b)
        assert len(found) % 2 == 1  # Wilson (1971), of games that are not degenerate
        assert max(gain(r_a, r_b, x, y) for x, y in found) < 1e-9
        pure = {(int(x.argmax()), int(y.argmax())) for x, y in found if x.max() == 1}
        best = (r_a == r_a.max(0)) & (r_b == r_b.max(1, keepdims=True))
        assert pure == set(zip(*np.nonzero(best), strict=True))


PAYS = {"first": lambda a, b: 0.0, "best": lambda a, b: a, "welfare": lambda a, b: a + b}


@pytest.mark.parametrize("selection", PAYS)
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4)])
def test_the_chosen_equilibrium_is_the_one_asked_for(shape, selection):
    r_a, r_b = torch.randn(2, 100, *shape, generator=generator(4), dtype=torch.float64)
    found = equilibrium(r_a, r_b, selection)
    for a, b, x, y in zip(*(part.numpy() for part in (r_a, r_b, *found)), strict=True):
        assert gain(a, b, x, y) < 1e-9
        worth = PAYS[selection](x @ a @ y, x @ b @ y)
        every = equilibria(a, b)
        assert worth == pytest.approx(max(PAYS[selection](u @ a @ v, u @ b @ v) for u, v in every))
        if selection == "first":
            assert x.tolist() == pytest.approx(every[0].x.tolist())
            assert y.tolist() == pytest.approx(every[0].y.tolist())


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 3)])
def test_degenerate_games_have_an_equilibrium_too(shape):
    """Payoffs −1, 0 and 1, many of them alike, and games in which one player or both cannot be
    hurt."""
    r_a, r_b = torch.randint(-1, 2, (2, 600, *shape), generator=generator(5)).double()
    r_a[:100], r_b[50:150] = 0, 0
    found = equilibrium(r_a, r_b, "welfare")
    for a, b, x, y in zip(*(part.numpy() for part in (r_a, r_b, *found)), strict=True):
        assert gain(a, b, x, y) < 1e-9
        assert x.sum() == pytest.approx(1)
        assert y.sum() == pytest.approx(1)


def test_supports_of_unequal_size():
    """His first action is his answer to mixtures of hers alone, x_1 in 1/3 … 2/3, among which she
    does not care."""
    r_a = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]).double()
    r_b = torch.tensor([[[2.0, 3.0, 0.0], [2.0, 0.0, 3.0]]]).double()
    assert equilibria(r_a[0].numpy(), r_b[0].numpy()) == []
    x, y = equilibrium(r_a, r_b, "first")
    assert 1 / 3 - 1e-9 <= float(x[0, 0]) <= 2 / 3 + 1e-9
    assert y.tolist() == [[1, 0, 0]]


def test_worst_case_by_hand():
    """Two states: 0 is matching pennies and leads to 1, which pays 3 whatever is done, and then
    ends."""
    reward = torch.tensor([[[1.0, -1.0], [-1.0, 1.0]], [[3.0, 3.0], [3.0, 3.0]]]).double()
    onward = torch.ones(2, 2, 2, dtype=torch.long)
    always_heads = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double()
    assert worst_case(reward, onward, None, None, 1).tolist() == [0, 3]
    assert worst_case(reward, onward, None, None, 2).tolist() == [3, 6]
    assert worst_case(reward, onward, None, always_heads, 2).tolist() == [2, 6]
    assert worst_case(reward, onward, torch.tensor([False, True]), always_heads, 2).tolist() == [
        -1,
        3,
    ]
    both = torch.stack([always_heads, torch.full((2, 2), 0.5).double()])
    assert worst_case(reward, onward, None, both, 1).tolist() == [[-1, 3], [0, 3]]
