"""Benchmarks of games of learners and level-k thinkers."""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from components.games.agents.player import Player
from components.games.fast.engine import CompiledPlayerState
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Measured, Report
from scripts.benchmarks.workloads import component, load
from scripts.peers.agent_objects import play as play_agents
from scripts.peers.open_spiel_learners import OpenSpielLearners

NAMES = {"stateless": "friend_or_foe", "grid": "friend_or_foe_grid"}
ENGINES = ("tensors", "compiled")
PARTS = 5
MOST = 15.0  # seconds
COIN_KEYS = {"alpha": 0.01, "gamma": 0.99, "policy": "softmax", "temperature": 0.3}


def build_game(name: str, seeds: int, episodes: int) -> Any:
    problem = load(NAMES[name], seeds, episodes=episodes)
    problem.attacker = component("attacker", "exponential_smoother")
    return problem


def build_dilemma(seeds: int, rounds: int) -> Any:
    """Iterated prisoner's dilemma against a Q-learner."""
    problem = load("iterated_matrix", seeds, episodes=rounds)
    problem.attacker = component("attacker", "learner", agent=component("inference", "q_learning"))
    return problem


def learn(
    problem: Any,
    model: str,
    episodes: int,
    seed: int = 0,
    method: str = "level_k",
    engine: str = "compiled",
    **keys: Any,
) -> tuple[Tensor, float, int]:
    """Rewards of an agent, seconds and rounds, with compiled loops or tensors."""
    rng = Streams(seed)
    inference = component("inference", method, **keys)
    init = Player.init if engine == "tensors" else type(inference).init
    state = init(inference, component("model", model).build(problem, rng), problem, rng)
    seconds = 0.0
    rounds = 0
    for _, episode in problem.batches("episode", rng, 0, episodes):
        start = time.process_time()
        state, _ = inference.step(state, episode, rng)
        seconds += time.process_time() - start
        is_compiled = isinstance(state, CompiledPlayerState)  # the state counts rounds of the grid
        rounds += int(state.plays.moves.sum()) if is_compiled else problem.replicates
    return inference.posterior(state).rewards, seconds, rounds


def measure_seconds(name: str, seeds: int, episodes: int, engine: str, level: int = 2) -> Measured:
    """Seconds per round of all seeds played together."""
    problem = build_game(name, seeds, episodes)
    _, seconds, rounds = learn(problem, "q_table", episodes, engine=engine, level=level)
    return Measured(seconds / rounds)


def check_law(name: str, report: Report) -> None:
    """Check that mean rewards of both engines agree."""
    rewards = {
        engine: learn(build_game(name, 500, 100), "q_table", 100, seed=1, engine=engine)[0].mean(1)
        for engine in ENGINES
    }
    report.assert_equal_means(rewards, most=5.0)


def measure_thinkers(options: Namespace, report: Report) -> None:
    """Games of level-2 thinkers: compiled loops and tensors against agent objects, one for each seed.

        python -m scripts.benchmarks games

    The peer is our own: in each round it performs the operations of ARAMARL's
    Level2QAgent (numpy tables, ε-greedy actions, Dirichlet counts, one draw of the forecast for the
    action and one for the target), against an exponential smoother.  Mean rewards of both engines must
    agree.  Times are per round, i.e. per move of a seed that is still playing.

    A ratio of 300 is reached on an idle machine and 260 on a busy one.  Of 65 ns per round the loop
    takes 30; the rest is the fixed cost per episode of 28 µs for any number of seeds: 8 µs to pass 40
    arrays to the loop, and 20 µs to store rewards, welfare and first actions, which the peer does not
    store."""

    def share(episodes: int) -> int:
        return max(10, episodes * options.percent // 100)

    for name in NAMES:
        check_law(name, report)
    cases = [
        ("stateless", 1000, 4000, 2000, "compiled"),
        ("grid", 1000, 800, 400, "compiled"),
        ("stateless", 100, 2000, 300, "tensors"),
    ]
    for case, (name, seeds, theirs, ours, engine) in zip(report.goals, cases, strict=True):
        ways = {
            engine: partial(measure_seconds, name, seeds, share(ours), engine),
            "agents": partial(play_agents, build_game(name, 1, 1), share(theirs)),
        }
        report.race(case, ways, options.repeats)
    for level in range(1, 6):
        way = partial(measure_seconds, "stateless", 1000, share(1000), "compiled", level)
        report.time({f"level {level}, a round": way}, 1)


def play_dilemma(rounds: int) -> tuple[Tensor, float]:
    """Rewards [R, T] of the first of our learners, and seconds per round."""
    problem = build_dilemma(1000, rounds)
    rewards, seconds, played = learn(problem, "q_table", rounds, method="q_learning")
    return rewards, seconds / played


def measure_q_learners(options: Namespace, report: Report) -> None:
    """Independent Q-learners in the iterated prisoner's dilemma, against OpenSpiel's.

        python -m scripts.benchmarks q_learners

    Both learners have our defaults of α, γ and ε.  Ours play 1,000 games together in the compiled loop,
    OpenSpiel's play sequentially.  Mean rewards of the five parts of a game must agree within four
    standard errors.  Times are per round."""
    rounds = options.rounds
    method = component("inference", "q_learning")
    peer = OpenSpielLearners(build_dilemma(1, rounds), method, rounds)
    theirs = np.stack([peer.play(seed) for seed in range(options.games)])
    samples = {"OpenSpiel": theirs, "ours": play_dilemma(rounds)[0].numpy()}
    means = {name: x.reshape(len(x), PARTS, -1).mean(2) for name, x in samples.items()}
    report.assert_equal_means(means)
    ways = {"ours": lambda: Measured(play_dilemma(rounds)[1]), "OpenSpiel": peer.measure_seconds}
    report.race("1,000 games", ways, options.repeats)


def play_coins(episodes: int, engine: str) -> tuple[float, Tensor]:
    """CPU seconds per 10,000 episodes, and rewards."""
    problem = load("coin_game", 5, episodes=episodes, start="random")
    opponent = component("inference", "q_learning", **COIN_KEYS)
    problem.attacker = component("attacker", "learner", agent=opponent)
    keys = COIN_KEYS | {"alpha_opponent": 0.01, "policy_opponent": "softmax"}
    rewards, seconds, _ = learn(problem, "q_linear", episodes, engine=engine, **keys)
    return seconds * 10_000 / episodes, rewards


def measure_coin_game(options: Namespace, report: Report) -> None:
    """Seconds per 10,000 episodes of the coin game with compiled loops and with tensors, 5 seeds.

        python -m scripts.benchmarks coin_game

    A level-2 thinker plays against a Q-learner; the time is extrapolated from fewer episodes.  Mean
    rewards of both engines must agree."""
    for engine in ("compiled", "tensors"):
        play_coins(20, engine)  # warm-up
    seconds, rewards = play_coins(options.episodes, "compiled")
    slow, others = play_coins(options.by_tensors, "tensors")
    means = {"compiled": rewards[:, : options.by_tensors].mean(1), "tensors": others.mean(1)}
    report.assert_equal_means(means, most=5.0)
    report.record("10,000 episodes in 15 s", [MOST / seconds])
    report.record("tensors", [slow / seconds])
