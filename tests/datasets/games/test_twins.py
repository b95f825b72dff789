"""Environments compared with plain Python twins over thousands of moves; broken ones are
detected."""

import dataclasses
import itertools

import pytest
import torch
from support.runs.configured import F64, component, generator, make_setting

from components.games.environments.coin_game import CoinEnvironment
from components.games.environments.data_sharing import Market
from components.games.environments.table_environment import TableEnvironment
from runner.execution.rng import Streams

SETTING = make_setting(replicates=40)


def environment(name, **keys):
    return component("dataset", name, **keys).load(Streams(0), SETTING).environment


def walk(world, twin, moves, look=lambda one, s: True):
    """Random play in both games: rewards and next states agree everywhere; ``twin`` builds a twin
    of a state."""
    g = generator(0)
    s = world.reset(40, g)
    twins = [twin(start) for start in s.tolist()]
    for _ in range(moves):
        a = torch.randint(0, world.n_actions, (40,), generator=g)
        b = torch.stack([torch.randint(0, n, (40,), generator=g) for n in world.n_threats], 1)
        outcome = world.step(s, a, b, g)
        for i, small in enumerate(twins):
            mine, theirs = small.move(int(a[i]), b[i].tolist())
            assert float(outcome.r_a[i]) == pytest.approx(mine)
            assert outcome.r_b[i].tolist() == pytest.approx(theirs)
            assert look(small, outcome.s_next[i])
        s = outcome.s_next


class Rounds:
    """A bimatrix game with a memory of one round."""

    def __init__(self, pays):
        self.pays = pays
        self.last = None

    def move(self, a, b):
        self.last = (a, b[0])
        return self.pays[a][b[0]][0], [self.pays[a][b[0]][1]]


DILEMMA = [[[5.0, 5.0], [0.0, 6.0]], [[6.0, 0.0], [1.0, 1.0]]]
ODD = [[[1.0, -2.0], [0.5, 3.0], [4.0, 0.0]], [[-1.0, 2.0], [7.0, 1.0], [0.0, 0.0]]]


@pytest.mark.parametrize(("keys", "pays"), [({}, DILEMMA), ({"bimatrix": ODD}, ODD)])
def test_iterated_matrix_equals_its_environment(keys, pays):
    world = environment("iterated_matrix", **keys)
    B = len(pays[0])
    assert int(world.reset(1, torch.Generator())) == len(pays) * B
    walk(world, lambda _: Rounds(pays), 60, lambda t, s: int(s) == t.last[0] * B + t.last[1])
    assert environment("iterated_matrix", memory=0).n_states == 1


def test_matching_pennies_sum_to_zero():
    world = environment("iterated_matrix", payoffs="matching_pennies", memory=0)
    assert world.reward_a[0].tolist() == [[1, -1], [-1, 1]]
    assert torch.equal(world.reward_b[..., 0], -world.reward_a)


class Positions:
    """Blotto, position by position."""

    def __init__(self, positions, resources):
        chosen = itertools.combinations_with_replacement(range(positions), resources)
        self.ways = [[places.count(i) for i in range(positions)] for places in chosen]

    def move(self, a, b):
        mine = 0.0
        theirs = [0.0] * len(b)
        for place, hers in enumerate(self.ways[a]):
            matches = [m for m, n in enumerate(b) if n == place]
            if not matches or hers == len(matches):
                continue
            sign = 1 if hers > len(matches) else -1
            mine += sign
            for m in matches:
                theirs[m] -= sign / len(matches)
        return mine, theirs


@pytest.mark.parametrize(("n", "k", "M"), [(3, 2, 2), (4, 3, 3), (2, 1, 1)])
def test_blotto_equals_its_environment(n, k, M):
    world = environment("blotto", positions=n, resources=k, attackers=M)
    walk(world, lambda _: Positions(n, k), 60)
    targets = world.observe(torch.zeros(1, dtype=torch.long), torch.tensor([0])).targets
    assert targets.sum() == pytest.approx(1)


class Grid:
    """The coin game, cell by cell."""

    def __init__(self, n, shared, start):
        self.n = n
        self.shared = shared
        cells = [divmod(c, n) for c in start]
        self.players = cells[:2]
        self.coins = cells[2:]

    def move(self, a, b):
        for who, action in enumerate((a, b[0])):
            row, column = self.players[who]
            down, right = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}[action]
            if 0 <= row + down < self.n and 0 <= column + right < self.n:
                self.players[who] = (row + down, column + right)
        gains = [0.0, 0.0]
        for i, coin in enumerate(self.coins):
            matches = [who for who in (0, 1) if self.players[who] == coin]
            if len(matches) == 1:
                gains[matches[0]] += 1
            elif matches:
                for who, share in zip(
                    (0, 1),
                    {"split": (0.5, 0.5), "hers": (1, 0), "his": (0, 1)}[self.shared],
                    strict=True,
                ):
                    gains[who] += share
            if matches:
                self.coins[i] = None
        return gains[0], [gains[1]]

    def at(self, s):
        cells = [-1 if p is None else p[0] * self.n + p[1] for p in (*self.players, *self.coins)]
        return [self.n**2 if c < 0 else c for c in cells] == s.tolist()


@pytest.mark.parametrize("shared", ["split", "hers", "his"])
@pytest.mark.parametrize("start", ["fixed", "random"])
def test_coin_game_equals_its_environment(shared, start):
    world = environment("coin_game", size=3, start=start, shared=shared)
    began = world.reset(40, generator(0))
    assert all(len(set(s)) == 4 for s in began.tolist())
    walk(world, lambda s: Grid(3, shared, s), 12, Grid.at)
    features = world.features(began)
    assert features.shape == (40, 36)
    assert torch.equal(features.sum(1), torch.full((40,), 4.0, dtype=F64))
    gone = world.features(torch.tensor([[0, 1, 9, 9]]))
    assert gone.nonzero()[:, 1].tolist() == [0, 10]


class Sharing(Rounds):
    """A market with taxes and incentives calculated by hand, by the equation below (4.4)."""

    def __init__(self, rate, payers, incentive):
        super().__init__(DILEMMA)
        self.rate = rate
        self.payers = payers
        self.incentive = incentive

    def move(self, a, b):
        mine, (his,) = super().move(a, b)
        if (a, b[0]) == (0, 0):
            mine = mine + self.incentive
            his = his + self.incentive
        pays = [self.payers == "all" or act == 1 for act in (a, b[0])]
        tax = [self.rate * r if p else 0.0 for r, p in zip((mine, his), pays, strict=True)]
        return mine - tax[0] + sum(tax) / 2, [his - tax[1] + sum(tax) / 2]


class AfterTax:
    """A market at one tax rate, as an environment without a third party."""

    def __init__(self, market, rate):
        self.market = market
        self.rate = rate
        self.n_actions = 2
        self.n_threats = (2,)
        self.reset = market.reset

    def step(self, s, a, b, g):
        rate = torch.full((len(a),), self.rate, dtype=F64)
        return self.market.after_tax(self.market.step(s, a, b, g), a, b, rate)


@pytest.mark.parametrize("payers", ["all", "defectors"])
def test_data_sharing_equals_its_environment(payers):
    market = environment("data_sharing", tax_on=payers, incentive=0.5)
    walk(AfterTax(market, 0.3), lambda _: Sharing(0.3, payers, 0.5), 40)
    ended = market.at(500)
    assert market.at(499).incentive == 0.5
    walk(ended, lambda _: Rounds(DILEMMA), 20)


@pytest.mark.parametrize("broken", ["positions", "border", "tax"])
def test_broken_environments_are_detected(broken, monkeypatch):
    wrapped = (torch.arange(9)[:, None] + torch.tensor([-3, 1, 3, -1])) % 9
    monkeypatch.setattr(CoinEnvironment, "next_cell", wrapped)
    monkeypatch.setattr(Market, "after_tax", lambda self, outcome, a, b, rate: outcome)
    blotto = environment("blotto")
    world, *twin = {
        "positions": (
            dataclasses.replace(blotto, reward_b=-blotto.reward_b),
            lambda _: Positions(3, 2),
        ),
        "border": (environment("coin_game", size=3), lambda s: Grid(3, "split", s), Grid.at),
        "tax": (AfterTax(environment("data_sharing"), 0.3), lambda _: Sharing(0.3, "all", 0.0)),
    }[broken]
    with pytest.raises(AssertionError):
        walk(world, twin[0], 12, *twin[1:])


def test_tabulated_games_are_table_environments():
    for name in ("iterated_matrix", "blotto", "data_sharing", "friend_or_foe"):
        assert isinstance(environment(name), TableEnvironment)
