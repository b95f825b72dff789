"""Games for tests: components from their YAML, a small threatened MDP with states, and a stationary
opponent."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from support.runs.configured import F64, component, double, load, normal, uniform
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.games.agents.player import Play, Player
from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment, repeat_game
from runner.execution.checkpoint import pack, unpack
from runner.execution.rng import Streams

# rock, paper, scissors
ROCK = [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]
# agents that forecast by counts, and one that does not forecast
METHODS = [
    ("q_learning", {}),
    ("fpq_learning", {}),
    ("level_k", {"level": 2}),
    ("level_k", {"level": 3}),
]
WEATHER = "parallel_envs:Weather"
PETTINGZOO = [
    "model=q_linear",
    "inference=fpq_learning",
    "attacker=exponential_smoother",
    "dataset=pettingzoo",
    "plugins=[parallel_envs]",
]


class Stationary(Opponent[Tensor]):
    """Opponent with threats drawn independently from fixed probabilities."""

    name: str = "stationary"
    p: list[float]

    def reset(self, seat: Seat, rng) -> Tensor:
        return torch.zeros(seat.replicates, dtype=seat.dtype)

    def act(self, state: Tensor, turn: Turn, rng) -> Tensor:
        u = uniform(rng.attack, len(state), 1)
        return (u >= double(self.p).cumsum(0)[:-1]).sum(-1)

    def observe(self, state: Tensor, move: Move) -> Tensor:
        return state


def game_of(name: str, replicates: int, attacker: Opponent | str = "random", **keys: Any) -> Game:
    """Game of a dataset, against an opponent or a decision maker selected by name."""
    game, _ = load(name, replicates=replicates, **keys)
    game.attacker = seat_opponent(attacker)
    return game


def friend_or_foe(replicates: int, episodes: int, beta: float = 0.7) -> Game:
    smoother = component("attacker", "exponential_smoother", beta=beta)
    return game_of("friend_or_foe", replicates, smoother, episodes=episodes)


def seat_of(
    replicates: int = 5,
    own: int = 2,
    others: tuple[int, ...] = (2,),
    targets: int = 2,
    environment: Any = None,
) -> Seat:
    """A seat in a game of one state."""
    cpu = torch.device("cpu")
    return Seat(replicates, own, others, targets, 1, cpu, torch.float64, environment)


def move_of(a: Tensor, **changes: Any) -> Move:
    """Move with the agent's action a [R], without observation and rewards except for
    ``changes``."""
    nothing = torch.zeros(len(a))
    numbers = dict.fromkeys(("s", "s_next", "b"), nothing.long())
    rewards = dict.fromkeys(("r", "r_hers"), nothing)
    none = dict.fromkeys(("seen", "done", "live"))
    shown = nothing.unsqueeze(1)
    move = Move(episode=0, a=a, shown=shown, cut=False, **numbers, **rewards, **none)
    return move._replace(**changes)


def three_states(replicates: int, episodes: int) -> Game:
    """3 states, 2 actions, 3 threats, general-sum rewards, deterministic transitions."""
    generator = torch.Generator().manual_seed(3)
    shape = (3, 2, 3)
    environment = TableEnvironment(
        reward_a=normal(generator, shape),
        reward_b=normal(generator, shape).unsqueeze(-1),
        transition=torch.randint(0, 3, shape, generator=generator),
        n_threats=(3,),
        touches=torch.zeros(3, 2, 1, dtype=F64),
    )
    return Game(
        name="three-states",
        environment=environment,
        episodes=episodes,
        tail=0.2,
        window=10,
        replicates=replicates,
        attacker=Stationary(p=[0.5, 0.2, 0.3]),
    )


def matrix_game(
    r_a, r_b=None, *, replicates: int, episodes: int, opponent: Opponent | str = "random"
) -> Game:
    """A repeated bimatrix game, zero-sum unless r_b [A, B] is given, against an opponent or a
    decision maker selected by name."""
    rewards = torch.as_tensor(r_a, dtype=F64)
    rewards_b = -rewards if r_b is None else torch.as_tensor(r_b, dtype=F64)
    return Game(
        name="matrix-game",
        environment=repeat_game(rewards, rewards_b.unsqueeze(-1), (rewards.shape[1],), 0),
        episodes=episodes,
        tail=0.2,
        window=10,
        replicates=replicates,
        attacker=seat_opponent(opponent),
    )


def seat_opponent(opponent: Opponent | str) -> Opponent:
    if isinstance(opponent, Opponent):
        return opponent
    if opponent == "random":
        return component("attacker", "fixed_policy", plays="random")
    return component("attacker", "learner", agent=component("inference", opponent))


def programme(matrix) -> tuple[float, np.ndarray]:
    """max v so that Σ_a x_a r(a, b) ≥ v for all b, x a distribution, and an x that reaches it."""
    matrix = np.asarray(matrix)
    rows, columns = matrix.shape
    solution = linprog(
        np.r_[np.zeros(rows), -1.0],
        A_ub=np.c_[-matrix.T, np.ones(columns)],
        b_ub=np.zeros(columns),
        A_eq=np.r_[np.ones(rows), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, 1)] * rows + [(None, None)],
    )
    return float(-solution.fun), solution.x[:-1]


def play(game: Game, inference, seed: int = 0, model="q_table", tensors: bool = False):
    """State after every episode of the game, and the posterior.

    ``model`` is a name, or action values; ``tensors`` disables the compiled loop.
    """
    rng = Streams(seed)
    state = init_game(game, inference, model, rng, tensors)
    state = play_episodes(inference, game, rng, state, 0, game.episodes)
    posterior: Play = inference.posterior(state)
    return state, posterior


def init_game(game: Game, inference, model, rng, tensors: bool):
    """State before the first episode; keys as in ``play``."""
    values = component("model", model).build(game, rng) if isinstance(model, str) else model
    init = Player.init if tensors else type(inference).init
    return init(inference, values, game, rng)


def tensors_of(state):
    """The layout of a state, and copies of its checkpointed tensors by name."""
    tensors: dict[str, Any] = {}
    skeleton = pack(state, tensors)
    rows = {
        name: value.rows if hasattr(value, "rows") else value for name, value in tensors.items()
    }
    return skeleton, {name: value.clone() for name, value in rows.items()}


def play_episodes(inference, problem, rng, state, start, stop):
    """State after the episodes from ``start`` to ``stop``."""
    for _, episode in problem.batches("episode", rng, start, stop):
        state, _ = inference.step(state, episode, rng)
    return state


def play_and_resume(open_game, half: int):
    """States of an uninterrupted game, and of one stopped after ``half`` episodes and resumed;
    asserts that their streams end in the same state.

    ``open_game()`` gives the agent, the game, its streams and the state before the first episode."""
    agent, game, rng, state = open_game()
    state = play_episodes(agent, game, rng, state, 0, half)
    skeleton, kept = tensors_of(state)
    streams = rng.state()
    whole = play_episodes(agent, game, rng, state, half, game.episodes)
    agent, game, repeat, fresh = open_game()
    repeat.restore(streams)
    state = play_episodes(agent, game, repeat, unpack(skeleton, kept, fresh), half, game.episodes)
    torch.testing.assert_close(repeat.state(), rng.state(), rtol=0, atol=0)
    return whole, state


def have_equal_states(one, other) -> bool:
    """True if two states hold the same numbers."""
    skeleton, tensors = tensors_of(one)
    other_skeleton, others = tensors_of(other)
    assert skeleton == other_skeleton
    return all(
        torch.equal(value.nan_to_num(nan=1e300), others[name].nan_to_num(nan=1e300))
        for name, value in tensors.items()
    )


def mean_and_se(x: torch.Tensor) -> tuple[float, float]:
    return float(x.mean()), float(x.std() / len(x) ** 0.5)


def assert_near(actual, exact) -> None:
    """Assert that tensors or arrays agree up to rounding."""
    np.testing.assert_allclose(actual, exact, rtol=1e-7, atol=1e-7)
