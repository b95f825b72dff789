"""Games for tests of the compiled loop: players, tables, and the difference of two states."""

import torch
from support.runs.configured import component
from support.small.small_games import game_of, init_game, play_episodes, tensors_of

from components.games.fast.engine import CompiledPlayerState
from runner.execution.rng import Streams

GAMES = {
    "friend_or_foe": ("friend_or_foe", {"targets": 2}),
    "three targets": ("friend_or_foe", {"targets": 3}),
    "six targets": ("friend_or_foe", {"targets": 6}),
    "grid": ("friend_or_foe_grid", {"horizon": 20}),
    "ends of the room": (
        "friend_or_foe_grid",
        {"horizon": 20, "counts": "last_move", "learns_from": "ends"},
    ),
    "matrix with memory": ("iterated_matrix", {"memory": 1}),
    "chicken": (
        "iterated_matrix",
        {"payoffs": "chicken", "T": 2.0, "R": 1.0, "S": -1.0, "P": -5.0},
    ),
    "sharing": ("data_sharing", {"memory": 1, "incentive": 1.5, "incentive_until": 15}),
    "coins": ("coin_game", {"size": 3, "start": "fixed"}),
    "hers": ("coin_game", {"size": 2, "start": "random", "shared": "hers", "moves": 5}),
    "his": ("coin_game", {"size": 3, "start": "random", "shared": "his"}),
}
OPPONENTS = {
    "smoother": ("exponential_smoother", {}),
    "first": ("exponential_smoother", {"ties": "first"}),
    "defects": ("fixed_policy", {"plays": "defect"}),
    "mixed": ("fixed_policy", {"plays": "random"}),
    "tit for tat": ("tit_for_tat", {"forgives": 0.0, "errs": 0.0}),
    "forgives": ("tit_for_tat", {"forgives": 0.1, "errs": 0.05}),
}
SOFT = {"policy": "softmax", "temperature": 0.5}
PLAYERS = {
    "q": ("q_learning", {}),
    "q softmax": ("q_learning", SOFT | {"bootstrap_at_horizon": False}),
    "fpq": ("fpq_learning", {"forget": 0.8, "alpha": 0.7}),
    "fpq decays": ("fpq_learning", {"epsilon": {"start": 0.5, "factor": 0.9, "every": 7}}),
    "level 1 last": ("level_k", {"level": 1, "ties": "last", "forecast_at": "current"}),
    "level 2": ("level_k", {}),
    "level 2 softmax": ("level_k", SOFT | {"policy_opponent": "softmax", "bootstrap_at_end": True}),
    "level 2 draws": ("level_k", {"forecast": "sampled", "ties": "first"}),
    "level 2 draws softly": ("level_k", SOFT | {"forecast": "sampled", "forecast_at": "current"}),
    "level 3": (
        "level_k",
        {
            "level": 3,
            "alpha_opponent": 0.6,
            "forget": 0.9,
            "epsilon_opponent": {"mean": 0.1, "rise": 0.2},
        },
    ),
    "level 3 first": (
        "level_k",
        {"level": 3, "ties": "first", "forecast_at": "current", "policy_opponent": "softmax"},
    ),
    "level 4": (
        "level_k",
        {"level": 4, "alpha": 1.0, "temperature_opponent": 0.7, "policy_opponent": "softmax"},
    ),
    "level 2 decays": ("level_k", {"epsilon_opponent": {"start": 0.9, "factor": 0.5, "every": 4}}),
    "averaging": ("model_averaging", {"levels": [1, 2], "forget": 0.9}),
    "averaging of three": (
        "model_averaging",
        SOFT | {"levels": [1, 3, 2], "forecast_at": "current"},
    ),
}
# games with opponents without and with random actions
TABLES = [
    ("friend_or_foe", "first"),
    ("three targets", "first"),
    ("six targets", "first"),
    ("grid", "first"),
    ("ends of the room", "first"),
    ("matrix with memory", "tit for tat"),
    ("chicken", "defects"),
    ("sharing", "tit for tat"),
]
SHARED = 5  # the first of the tables that share compiled loops
RANDOM_TABLES = [
    ("friend_or_foe", "smoother"),
    ("grid", "smoother"),
    ("three targets", "smoother"),
    ("matrix with memory", "forgives"),
    ("sharing", "mixed"),
]
# action values differ, so that no action is drawn
GREEDY = {"policy": "epsilon_greedy", "epsilon": 0.0}


def player(name, **keys):
    method, its = PLAYERS[name]
    return component("inference", method, **(its | keys))


def game(name, opponent, replicates, episodes, **keys):
    """``opponent`` is one of OPPONENTS, or of PLAYERS, which then learns with ``keys``."""
    if opponent in PLAYERS:
        attacker = component("attacker", "learner", agent=player(opponent, **keys))
    else:
        attacker = component("attacker", OPPONENTS[opponent][0], **OPPONENTS[opponent][1])
    dataset, its = GAMES[name]
    return game_of(dataset, replicates, attacker, **({"episodes": episodes} | its))


def start_game(problem, inference, seed=3, alike=False, tensors=False):
    """A state before the first episode with standard normal action values, equal in all replicates
    if ``alike``; with ``tensors`` the compiled loop is not used.
    """
    rng = Streams(seed)
    model = "q_linear" if problem.name == "coin_game" else "q_table"
    state = init_game(problem, inference, model, rng, tensors)
    assert isinstance(state, CompiledPlayerState) != tensors
    generator = torch.Generator().manual_seed(7)
    players = [(inference, state.mind)]
    if hasattr(state.standing.adversary, "mind"):
        players.append((problem.attacker.agent, state.standing.adversary.mind))
    thinkers = [mind for agent, memory in players for _, mind in agent.thinkers(memory)]
    for q in (q for mind in thinkers for q in mind.q):
        held = next(iter(q.buffers()))
        held.copy_(torch.randn(held.shape[alike:], generator=generator, dtype=held.dtype))
    return rng, state


def play_game(problem, inference, **keys):
    rng, state = start_game(problem, inference, **keys)
    return play_episodes(inference, problem, rng, state, 0, problem.episodes)


def difference(one, other):
    """The largest difference of two states' numbers, relative where numbers are large; NaN counts
    as infinite."""
    first = tensors_of(one)[1]
    second = tensors_of(other)[1]
    assert first.keys() == second.keys()
    pairs = [(first[name].double(), second[name].double()) for name in first if first[name].numel()]
    gaps = [((x - y).abs() / (1 + x.abs())).max() for x, y in pairs]
    return float(torch.stack(gaps).nan_to_num(torch.inf).max())


def replicates_first(name, rows, replicates):
    """Rows of traces [t, ·, R] averaged over the second half of the episodes, others
    unchanged: [R, ·]."""
    if ".rewards" in name or ".firsts" in name:
        return rows[len(rows) // 2 :].mean(0).view(-1, replicates).T
    return rows.double().reshape(replicates, -1)


def largest_z(one, other, replicates):
    """The largest difference of means over replicates of two states' numbers, in standard
    errors."""
    first = tensors_of(one)[1]
    second = tensors_of(other)[1]
    largest = 0.0
    for name in first:
        if not first[name].numel() or first[name].numel() % replicates:
            continue
        x, y = (replicates_first(name, held[name], replicates) for held in (first, second))
        se = ((x.var(0) + y.var(0)) / replicates).sqrt()
        gap = (x.mean(0) - y.mean(0)).abs()
        largest = max(largest, float((gap / se.clamp_min(1e-6 + 1e-6 * y.mean(0).abs())).max()))
    return largest
