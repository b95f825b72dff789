"""Games of any shape: several opponents, states without numbers, plug-in opponents and
approximators."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from support.runs.configured import component
from support.small.small_games import Stationary, draws, friend_or_foe, greedy, invert, play
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Environment, Move, NumberedStates, Outcome, Seat, Shown, Turn
from components.contracts.opponents import Opponent
from components.errors import ConfigMismatchError
from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from runner.execution import checkpoint
from runner.execution.rng import Streams

METHODS = [
    ("q_learning", {}),
    ("fpq_learning", {}),
    ("level_k", {"level": 2}),
    ("level_k", {"level": 3}),
]


def against_two(replicates: int, episodes: int, attacker: Opponent) -> Game:
    """Two states, two actions of hers, three and two of theirs; the reward of each is his own."""
    g = torch.Generator().manual_seed(5)
    shape = (2, 2, 6)
    environment = TableEnvironment(
        reward_a=torch.randn(shape, generator=g, dtype=torch.float64),
        reward_b=torch.randn(*shape, 2, generator=g, dtype=torch.float64),
        transition=torch.randint(0, 2, shape, generator=g),
        n_threats=(3, 2),
        touches=torch.zeros(2, 2, 1, dtype=torch.float64),
    )
    return Game(
        "against-two", environment, episodes, 0.2, 10, replicates=replicates, attacker=attacker
    )


class Pair(Opponent[Tensor]):
    """Two players at once, each with probabilities of his own."""

    name: str = "pair"
    first: list[float]
    second: list[float]

    def assign_seats(self, seats: int) -> list[Opponent]:
        return [Stationary(p=self.first), Stationary(p=self.second)]


PAIR = Pair(first=[0.5, 0.2, 0.3], second=[0.3, 0.7])


def test_fictitious_play_against_two_multiplies_their_forecasts():
    """Sections 4.3.1 and 4.3.5, literally."""
    game = against_two(3, 40, PAIR)
    state, posterior = play(game, component("inference", "fpq_learning", forget=0.9))
    rng = Streams(0)
    uniforms = [
        torch.rand(3, 1, generator=rng.noise, dtype=torch.float64)[:, 0].tolist() for _ in range(40)
    ]
    threats = [
        [player.act(torch.zeros(3), None, rng).tolist() for player in PAIR.assign_seats(2)]
        for _ in range(40)
    ]
    table = game.environment
    for i in range(3):
        q = [[[[0.0] * 2 for _ in range(3)] for _ in range(2)] for _ in range(2)]  # Q(s, a, b¹, b²)
        counts = [[[1.0] * 3 for _ in range(2)], [[1.0] * 2 for _ in range(2)]]

        def psi(s, q=q, counts=counts):
            p, r = ([c / sum(counts[m][s]) for c in counts[m][s]] for m in range(2))
            return [
                sum(q[s][a][x][y] * p[x] * r[y] for x in range(3) for y in range(2))
                for a in range(2)
            ]

        s = 0
        for t in range(40):
            a, (x, y) = (
                invert(greedy(psi(s), 0.1), uniforms[t][i]),
                (threats[t][0][i], threats[t][1][i]),
            )
            cell = s, a, 2 * x + y
            r, s_next = float(table.reward_a[cell]), int(table.transition[cell])
            for m, b in enumerate((x, y)):
                counts[m][s] = [0.9 * c for c in counts[m][s]]
                counts[m][s][b] += 1
            q[s][a][x][y] = 0.9 * q[s][a][x][y] + 0.1 * (r + 0.8 * max(psi(s_next)))
            s = s_next
        torch.testing.assert_close(
            state.mind.q.values[i].unflatten(-1, (3, 2)), torch.tensor(q, dtype=torch.float64)
        )
        torch.testing.assert_close(
            state.mind.counts[i, :, :3], torch.tensor(counts[0], dtype=torch.float64)
        )
        torch.testing.assert_close(
            state.mind.counts[i, :, 3:], torch.tensor(counts[1], dtype=torch.float64)
        )
    torch.testing.assert_close(posterior.forecast.sum(1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("level", [2, 3])
def test_each_of_two_opponents_is_modelled_by_himself(level):
    game = against_two(2, 30, PAIR)
    state, posterior = play(game, component("inference", "level_k", level=level))
    shapes = [tuple(q.values.shape[2:]) for q in state.mind.q]
    own = {2: [(3, 2), (2, 2)], 3: [(2, 3), (3, 2), (2, 2), (2, 2)]}[level]
    assert shapes == [*own, (2, 6)]
    assert state.mind.counts.shape[-1] == {2: 4, 3: 5}[level]
    assert posterior.forecast.shape == (2, 6)
    assert all(bool((q.values != 0).any()) for q in state.mind.q)


def test_a_twin_who_cannot_matter_changes_nothing():
    """Against a second opponent of one action, whatever the method, all is as against the first
    alone."""
    alone = friend_or_foe(3, 40)
    table = alone.environment
    beside = friend_or_foe(3, 40)
    beside.environment = TableEnvironment(
        table.reward_a,
        table.reward_b.expand(-1, -1, -1, 2),
        table.transition,
        (2, 1),
        table.touches,
    )

    class First(Opponent[Tensor]):
        name: str = "first"

        def assign_seats(self, seats: int) -> list[Opponent]:
            return [alone.attacker, Stationary(p=[1.0])]

    beside.attacker = First()
    for name, keys in METHODS:
        one, other = (
            play(game, component("inference", name, **keys))[1] for game in (alone, beside)
        )
        assert torch.equal(one.rewards, other.rewards), name
        assert torch.equal(one.values, other.values), name


@dataclass(frozen=True)
class Line:
    """States without numbers: a place on the line, moved by her and by him; s [R, 1].  It ends
    beyond ±3."""

    n_actions: int = 2
    n_threats: tuple[int, ...] = (2,)
    horizon: int = 6
    continuing: bool = False
    dtype: torch.dtype = torch.float64

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def reset(self, replicates: int, generator: torch.Generator) -> Tensor:
        return torch.randn(replicates, 1, generator=generator, dtype=self.dtype)

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        s_next = s + (2.0 * a - 1).unsqueeze(1) + 0.5 * (2.0 * b - 1)
        reward = -s_next[:, 0].abs()
        return Outcome(reward, -reward.unsqueeze(1), s_next, s_next[:, 0].abs() > 3)

    def observe(self, s: Tensor, a: Tensor) -> Shown:
        return Shown(torch.nn.functional.one_hot(a, 2).to(self.dtype), None)

    def features(self, s: Tensor) -> Tensor:
        return torch.cat([torch.ones_like(s), s, s.abs()], 1)


class Linear:
    """``QFunction`` and no more: Q(s, a, b) = w_ab · φ(s), by stochastic gradients; not a
    module."""

    def __init__(self, environment: Environment, replicates: int, own: int, other: int):
        self.environment, self.replicates, self.other = environment, replicates, other
        self.w = torch.zeros(replicates, 3, own * other, dtype=torch.float64)

    def fresh(self, own: int, other: int) -> Linear:
        return Linear(self.environment, self.replicates, own, other)

    def q(self, s: Tensor) -> Tensor:
        return (
            (self.environment.features(s).unsqueeze(1) @ self.w)
            .squeeze(1)
            .unflatten(1, (-1, self.other))
        )

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        rows, column = torch.arange(self.replicates), a * self.other + b
        error = rate * (target - self.q(s).flatten(1)[rows, column])
        self.w[rows, :, column] += error.unsqueeze(1) * self.environment.features(s)

    def state_dict(self):
        return {"w": self.w}

    def load_state_dict(self, state_dict):
        self.w = state_dict["w"]


def line(replicates: int = 30, episodes: int = 5) -> Game:
    attacker = component("attacker", "exponential_smoother")
    return Game("line", Line(), episodes, 0.5, 10, replicates=replicates, attacker=attacker)


@pytest.mark.parametrize(("name", "keys"), METHODS)
def test_states_without_numbers_and_an_approximator_of_ones_own(name, keys):
    game = line(episodes=60)
    assert isinstance(game.environment, Environment)
    assert not isinstance(game.environment, NumberedStates)
    model = Linear(game.environment, 30, 1, 1)
    assert isinstance(model, QFunction)
    inference = component("inference", name, alpha=0.02, **keys)
    _, posterior = play(game, inference, model=model)
    assert torch.isfinite(posterior.rewards).all()
    earned = posterior.rewards[:, -20:].mean()
    aimless = component("inference", name, alpha=0.02, epsilon=1.0, **keys)
    assert earned > play(line(episodes=60), aimless, model=model)[1].rewards.mean() + 1
    here = posterior.values_at(torch.tensor([[2.0]], dtype=torch.float64).expand(30, 1))
    assert float((here[:, 0] > here[:, 1]).double().mean()) > 0.8  # back towards the middle
    assert game.describe()["states"] == "not numbered"


def test_a_table_needs_states_with_numbers():
    with pytest.raises(
        ConfigMismatchError, match="model=q_table: a table needs states with numbers"
    ):
        component("model", "q_table").build(line(), Streams(0))


class Follower(Opponent[Tensor]):
    """A learner with ``Opponent``'s methods and no more: he counts what she does in each state, and
    answers the likeliest."""

    name: str = "follower"

    def reset(self, seat: Seat, rng) -> Tensor:
        return torch.ones(seat.replicates, seat.n_states, seat.hers, dtype=seat.dtype)

    def act(self, state: Tensor, turn: Turn, rng) -> Tensor:
        return state[torch.arange(len(turn.s)), turn.s].argmax(-1)

    def observe(self, state: Tensor, move: Move) -> Tensor:
        state = state.clone()
        state[torch.arange(len(move.s)), move.s, move.a] += 1
        return state


@pytest.mark.parametrize(("name", "keys"), METHODS)
def test_an_opponent_who_learns_and_sees_the_state(name, keys, tmp_path):
    game = friend_or_foe(4, 30)
    game.attacker = Follower()
    inference, rng = component("inference", name, **keys), Streams(0)
    model = component("model", "q_table").build(game, rng)
    state, posterior = play(game, inference, model=model)
    assert state.standing.adversary.sum() == 4 * (2 + 30)
    # Stopped half-way and restored, the game ends as it did.
    half = inference.init(model, game, rng)
    for _, episode in game.batches("episode", rng, 0, 15):
        half, _ = inference.step(half, episode, rng)
    facts = {"step": 15, "replicate": 0, "signature": "s"}
    checkpoint.save_checkpoint(tmp_path, checkpoint.snapshot(half, rng.state(), facts))
    facts, tensors, _ = checkpoint.load_newest(tmp_path, "s")
    rng = Streams(0)
    again, streams = checkpoint.restore(facts, tensors, inference.init(model, game, rng))
    rng.restore(streams)
    for _, episode in game.batches("episode", rng, 15, 30):
        again, _ = inference.step(again, episode, rng)
    assert torch.equal(inference.posterior(again).rewards, posterior.rewards)
    assert torch.equal(again.standing.adversary, state.standing.adversary)


def test_players_and_seats_must_be_as_many():
    game = against_two(1, 2, Pair(first=[1.0], second=[1.0]))
    game.environment = friend_or_foe(1, 2).environment
    with pytest.raises(ConfigMismatchError, match="2 players for the 1 seats"):
        game.opening(Streams(0))


def test_exploration_decays_by_the_episode():
    """With ε = 1 in the first episodes and none after, all choices are random and then greedy."""
    decay = {"start": 1.0, "factor": 1e-9, "every": 20}
    game = friend_or_foe(2000, 40)
    game.attacker = Stationary(p=[1.0, 0.0])
    _, posterior = play(game, component("inference", "q_learning", epsilon=decay, alpha=0.5))
    random, sure = posterior.rewards[:, :20], posterior.rewards[:, 25:]
    assert abs(float(random.mean())) < 4 * 50 / (2000 * 20) ** 0.5
    assert bool((sure == 50).all())


def test_a_bad_schedule_is_one_line(make_job):
    from runner.errors import ConfigError

    with pytest.raises(
        ConfigError, match=r"^inference.epsilon.start=2.0: out of range, must be ≤ 1$"
    ):
        make_job(
            "+experiment=friend_or_foe_grid",
            "inference.epsilon={start: 2.0, factor: 0.9, every: 10}",
        )
    with pytest.raises(ConfigError, match=r"^inference.epsilon=1.5: out of range, must be ≤ 1$"):
        make_job("+experiment=friend_or_foe", "inference.epsilon=1.5")


def test_her_uniforms_are_the_noise_stream_alone():
    """One a move and replicate, whatever the opponents draw: what the literal games above rest
    on."""
    game = friend_or_foe(2, 6)
    uniforms, _ = draws(friend_or_foe(2, 6))
    rng = Streams(0)
    inference = component("inference", "q_learning")
    state = inference.init(component("model", "q_table").build(game, rng), game, rng)
    for _, episode in game.batches("episode", rng, 0, 6):
        state, _ = inference.step(state, episode, rng)
    after = torch.rand(1, generator=rng.noise, dtype=torch.float64)
    fresh = Streams(0)
    torch.rand(12, generator=fresh.noise, dtype=torch.float64)
    assert torch.equal(after, torch.rand(1, generator=fresh.noise, dtype=torch.float64))
    assert len(uniforms) == 6
