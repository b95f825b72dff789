"""Values compared with linear programmes and known games; equilibria of 10⁴ random games, without
profitable deviations."""

import numpy as np
import pytest
import torch
from support.runs.configured import draw_normal, generator
from support.small.small_games import ROCK, assert_near, programme

from components.games.equilibria.bimatrix import equilibrium, mixtures, sizes
from components.games.equilibria.matrix_games import equilibria, gain, maximin, worst_case


@pytest.mark.parametrize(
    ("shape", "games"), [((2, 2), 400), ((3, 3), 200), ((4, 3), 100), ((6, 9), 40), ((2, 7), 50)]
)
def test_values_match_linear_programme(shape, games):
    """With many ties, for all games in parallel and separately; the other player has a strategy
    with the same bound (von Neumann)."""
    payoff = torch.randint(-3, 4, (games, *shape), generator=generator(0)).double()
    solutions = maximin(payoff)
    assert_near(solutions.value, [programme(matrix)[0] for matrix in payoff.numpy()])
    assert_near((solutions.strategy.unsqueeze(1) @ payoff).squeeze(1).amin(-1), solutions.value)
    assert_near(solutions.strategy.sum(-1), np.ones(games))
    assert (solutions.strategy >= 0).all()
    assert_near(-maximin(-payoff.mT).value, solutions.value)
    first = maximin(payoff[0])
    assert torch.equal(first.value, solutions.value[0])
    assert torch.equal(first.strategy, solutions.strategy[0])


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (4, 3)])
def test_indifferent_mixture_has_the_value(shape):
    """Shapley and Snow (1950): a square submatrix has the value of the game."""
    payoff = draw_normal(100, *shape, seed=2)
    x = mixtures(payoff)
    assert x.shape[1] == len(sizes(*shape))
    assert_near(x.sum(-1), np.ones(x.shape[:2]))
    assert_near((x @ payoff).amin(-1).amax(-1), maximin(payoff).value)


def test_equally_safe_pure_actions_are_mixed():
    payoff = torch.tensor(
        [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 2.0]], [[0.0, 3.0], [1.0, 2.0]]]
    ).double()
    assert maximin(payoff).strategy.tolist() == [[0.5, 0.5], [0.5, 0.5], [0, 1]]
    assert maximin(torch.zeros(3, 4)).strategy.tolist() == pytest.approx([1 / 3] * 3)
    assert maximin(torch.tensor([[1.0], [4.0], [4.0]])) == (
        torch.tensor(4.0),
        pytest.approx([0, 0.5, 0.5]),
    )


def test_known_games_have_known_values():
    value, x = maximin(torch.tensor(ROCK).double())
    assert float(value) == pytest.approx(0, abs=1e-9)
    assert x.tolist() == pytest.approx([1 / 3] * 3)
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    dilemma = np.array([[5.0, 0.0], [6.0, 1.0]])
    # R > T > P > S: both pure ones, and x = (P − S)/(R − S − T + P)
    hunt = np.array([[5.0, 0.0], [4.0, 1.0]])
    rock = np.array(ROCK)
    thirds = [1 / 3] * 3
    for r_a, r_b, strategies in (
        (pennies, -pennies, [[0.5, 0.5]]),
        (dilemma, dilemma.T, [[0, 1]]),
        (hunt, hunt.T, [[1, 0], [0, 1], [0.5, 0.5]]),
        (rock, -rock, [thirds]),
    ):
        solutions = equilibria(r_a, r_b)
        assert_near([pair.x for pair in solutions], strategies)
        assert_near([pair.y for pair in solutions], strategies)
        assert [pair.pure for pair in solutions] == [max(x) == 1 for x in strategies]


@pytest.mark.parametrize(("shape", "games"), [((2, 2), 10_000), ((3, 3), 300), ((2, 4), 300)])
def test_random_games_have_an_odd_number_of_equilibria(shape, games):
    """Every pure equilibrium is found."""
    rng = np.random.default_rng(0)
    for _ in range(games):
        r_a, r_b = rng.normal(size=(2, *shape))
        solutions = equilibria(r_a, r_b)
        assert len(solutions) % 2 == 1  # Wilson (1971), for non-degenerate games
        assert max(gain(r_a, r_b, x, y) for x, y in solutions) < 1e-9
        pure = {(int(x.argmax()), int(y.argmax())) for x, y in solutions if x.max() == 1}
        best = (r_a == r_a.max(0)) & (r_b == r_b.max(1, keepdims=True))
        assert pure == set(zip(*np.nonzero(best), strict=True))


PAYS = {"first": lambda a, b: 0.0, "best": lambda a, b: a, "welfare": lambda a, b: a + b}


def check_equilibria(found, r_a, r_b):
    """Check that strategies sum to 1 and that no deviation is profitable."""
    for a, b, x, y in zip(*(part.numpy() for part in (r_a, r_b, *found)), strict=True):
        assert gain(a, b, x, y) < 1e-9
        assert (x.sum(), y.sum()) == pytest.approx((1, 1))


@pytest.mark.parametrize("selection", PAYS)
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4)])
def test_selected_equilibrium_follows_the_rule(shape, selection):
    r_a, r_b = draw_normal(2, 100, *shape, seed=4)
    solution = equilibrium(r_a, r_b, selection)
    check_equilibria(solution, r_a, r_b)
    for a, b, x, y in zip(*(part.numpy() for part in (r_a, r_b, *solution)), strict=True):
        every = equilibria(a, b)
        pays = [PAYS[selection](u @ a @ v, u @ b @ v) for u, v in every]
        assert PAYS[selection](x @ a @ y, x @ b @ y) == pytest.approx(max(pays))
        if selection == "first":
            assert_near(x, every[0].x)
            assert_near(y, every[0].y)


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 3)])
def test_degenerate_games_have_an_equilibrium(shape):
    """Payoffs −1, 0 and 1 with many ties, and games with a constant payoff of one or both
    players."""
    r_a, r_b = torch.randint(-1, 2, (2, 600, *shape), generator=generator(5)).double()
    r_a[:100] = 0
    r_b[50:150] = 0
    check_equilibria(equilibrium(r_a, r_b, "welfare"), r_a, r_b)


def test_equilibria_may_have_unequal_supports():
    """The column player's first action is a best response only to mixtures with x_1 in [1/3, 2/3],
    and the row player is indifferent between these."""
    r_a = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]).double()
    r_b = torch.tensor([[[2.0, 3.0, 0.0], [2.0, 0.0, 3.0]]]).double()
    assert equilibria(r_a[0].numpy(), r_b[0].numpy()) == []
    x, y = equilibrium(r_a, r_b, "first")
    assert 1 / 3 - 1e-9 <= float(x[0, 0]) <= 2 / 3 + 1e-9
    assert y.tolist() == [[1, 0, 0]]


def test_worst_case_matches_hand_computation():
    """Two states: 0 is matching pennies and leads to 1, which pays 3 for all actions and is
    terminal."""
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
