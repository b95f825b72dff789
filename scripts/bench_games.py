"""Games of level-2 thinkers: compiled loops and tensors against an agent object of numpy tables,
one for each seed, and the seconds of the coin game.

    python -m scripts.bench_games                      # one JSON line
    python -m scripts.bench_games --aramarl FOLDER     # the peer is the released code, a checkout of ARAMARL

The peer without a checkout is our own: it does for each round what ARAMARL's Level2QAgent does
(numpy tables, ε-greedy actions, Dirichlet counts, one draw of the forecast for the action and one
for the target), against an exponential smoother. Mean rewards of both engines are compared before a
number is printed.  A round is a move of one seed that still plays; seconds are of the process's own
CPU, on one thread, runs interleaved; the ratio is the median of those next to each other."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import yaml

import conf
from components import registry
from components.contracts.roles import Setting
from components.games.environments.game import Game
from components.games.fast.engine import CompiledPlayerState
from runner.execution.rng import Streams

GOALS = {
    "stateless, 1,000 seeds": 300.0,
    "grid, 1,000 seeds": 100.0,
    "stateless, tensors, 100 seeds": 1.0,
}
COINS = 15.0  # seconds of 10,000 episodes of the coin game, 5 seeds
NAMES = {"stateless": "friend_or_foe", "grid": "friend_or_foe_grid"}


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    with open(os.path.join(os.path.dirname(str(conf.__file__)), role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


class Level2:
    """Our own agent object."""

    def __init__(self, actions: int, states: int):
        self.q, self.his = np.zeros((states, actions, 2)), np.zeros((states, 2, actions))
        self.counts = np.ones(actions)

    def guess(self, s: int) -> int:
        if np.random.rand() < 0.1:
            return int(np.random.choice(2))
        return int(np.argmax(np.dot(self.his[s], self.counts / np.sum(self.counts))))

    def act(self, s: int) -> int:
        if np.random.rand() < 0.1:
            return int(np.random.choice(self.q.shape[1]))
        return int(np.argmax(self.q[s, :, self.guess(s)]))

    def update(
        self, s: int, moves: tuple[int, int], gains: tuple[float, float], after: int
    ) -> None:
        (a, b), (r_a, r_b) = moves, gains
        self.counts[a] += 1
        ahead = np.max(np.dot(self.his[after], self.counts / np.sum(self.counts)))
        self.his[s, b, a] = 0.9 * self.his[s, b, a] + 0.1 * (r_b + 0.8 * ahead)
        self.q[s, a, b] = 0.9 * self.q[s, a, b] + 0.1 * (
            r_a + 0.8 * np.max(self.q[after, :, self.guess(after)])
        )


def agent(checkout: str | None, actions: int, states: int) -> Any:
    if checkout is None:
        return Level2(actions, states)
    sys.path.insert(0, checkout)
    theirs = importlib.import_module("agent").Level2QAgent
    return theirs(
        np.arange(actions), np.arange(2), states, learning_rate=0.1, epsilon=0.1, gamma=0.8
    )


def game(name: str, seeds: int, episodes: int) -> Game:
    setting = Setting(Path(), torch.device("cpu"), torch.float64, seeds)
    problem: Game = component("dataset", NAMES[name], episodes=episodes).load(Streams(0), setting)
    problem.attacker = component("attacker", "exponential_smoother")
    return problem


def peer(name: str, episodes: int, checkout: str | None) -> float:
    """Seconds a round of one agent object after another."""
    rules: Any = game(name, 1, 1).environment
    r_a, r_b, after = (
        rules.reward_a.numpy(),
        rules.reward_b[..., 0].numpy(),
        rules.transition.numpy(),
    )
    is_terminal = np.zeros(len(r_a), bool) if rules.ends is None else rules.ends.numpy()
    touches = rules.touches.numpy()
    learner, p, rounds = agent(checkout, r_a.shape[1], len(r_a)), np.full(2, 0.5), 0
    start = time.process_time()
    for _ in range(episodes):
        s = rules.start
        for _ in range(rules.horizon):
            a, b = learner.act(s), int(np.argmin(p))
            s_next = int(after[s, a, b])
            learner.update(s, (a, b), (r_a[s, a, b], r_b[s, a, b]), s_next)
            if touches[s, a].any():
                p = 0.75 * p + 0.25 * touches[s, a]
            s, rounds = s_next, rounds + 1
            if is_terminal[s]:
                break
    return (time.process_time() - start) / rounds


def ours(name: str, seeds: int, episodes: int, engine: str, level: int = 2) -> float:
    """Seconds a round of all seeds at once; the compiled loop counts the rounds of the grid."""
    problem, rng = game(name, seeds, episodes), Streams(0)
    inference = component("inference", "level_k", engine=engine, level=level)
    state = inference.init(component("model", "q_table").build(problem, rng), problem, rng)
    seconds, rounds = 0.0, 0
    for _, episode in problem.batches("episode", rng, 0, episodes):
        start = time.process_time()
        state, _ = inference.step(state, episode, rng)
        seconds += time.process_time() - start
        rounds += int(state.plays.moves.sum()) if isinstance(state, CompiledPlayerState) else seeds
    return seconds / rounds


def check_law(name: str) -> None:
    """Checks that mean rewards of both engines agree within five standard errors."""
    means, variances = [], []
    for engine in ("tensors", "compiled"):
        problem, rng = game(name, 500, 100), Streams(1)
        inference = component("inference", "level_k", engine=engine)
        state = inference.init(component("model", "q_table").build(problem, rng), problem, rng)
        for _, episode in problem.batches("episode", rng, 0, 100):
            state, _ = inference.step(state, episode, rng)
        rewards = inference.posterior(state).rewards.mean(1)
        means.append(float(rewards.mean()))
        variances.append(float(rewards.var()) / len(rewards))
    assert abs(means[0] - means[1]) < 5 * sum(variances) ** 0.5, (
        f"{name}: the engines disagree, {means}"
    )


def coins(episodes: int, engine: str) -> float:
    """Seconds of a level-2 thinker against a Q-learner for 10,000 episodes of 5 seeds, from those
    of fewer."""
    setting, rng = Setting(Path(), torch.device("cpu"), torch.float64, 5), Streams(0)
    problem: Game = component("dataset", "coin_game", episodes=episodes, start="random").load(
        Streams(0), setting
    )
    keys = {"alpha": 0.01, "gamma": 0.99, "policy": "softmax", "temperature": 0.3}
    problem.attacker = component(
        "attacker", "learner", agent=component("inference", "q_learning", **keys)
    )
    keys |= {"alpha_opponent": 0.01, "policy_opponent": "softmax", "engine": engine}
    inference = component("inference", "level_k", **keys)
    state = inference.init(component("model", "q_linear").build(problem, rng), problem, rng)
    start = time.process_time()
    for _, episode in problem.batches("episode", rng, 0, episodes):
        state, _ = inference.step(state, episode, rng)
    return (time.process_time() - start) * 10_000 / episodes


def ratio(theirs: Callable[[], float], mine: Callable[[], float], repeats: int) -> list[float]:
    pairs = []
    for _ in range(repeats + 1):  # the first warms up
        theirs_took, mine_took = theirs(), mine()
        pairs.append(theirs_took / mine_took)
        print(
            f"  {theirs_took * 1e6:9.2f} us against {mine_took * 1e9:9.1f} ns a round", flush=True
        )
    return [round(float(v), 3) for v in np.quantile(pairs[1:], (0.5, 0.25, 0.75))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--aramarl", help="a checkout of ARAMARL, whose agent is then the peer")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in NAMES:
        check_law(name)
    ratios = {}
    for name, episodes in (("stateless", 4000), ("grid", 800)):
        case = f"{name}, 1,000 seeds"
        print(case)
        peer_seconds = lambda name=name, n=episodes: peer(name, n, arguments.aramarl)  # noqa: E731
        loops = lambda name=name, n=episodes: ours(name, 1000, n // 2, "compiled")  # noqa: E731
        ratios[case] = ratio(peer_seconds, loops, arguments.repeats)
    case = "stateless, tensors, 100 seeds"
    print(case)
    ratios[case] = ratio(
        lambda: peer("stateless", 2000, arguments.aramarl),
        lambda: ours("stateless", 100, 300, "tensors"),
        arguments.repeats,
    )
    durations = {}
    for engine, episodes in (("compiled", 1000), ("tensors", 50)):
        coins(20, engine)  # warms up
        durations[engine] = coins(episodes, engine)
    print(
        f"coin game, 10,000 episodes of 5 seeds: {durations['compiled']:.1f} s compiled, "
        f"{durations['tensors']:.0f} s by tensors"
    )
    for level in range(1, 6):
        print(
            f"level {level}: {ours('stateless', 1000, 1000, 'compiled', level) * 1e9:.1f} ns a round"
        )
    name = "ARAMARL" if arguments.aramarl else "agent objects"
    print(
        json.dumps(
            {
                "benchmark": "games",
                "peer": name,
                "ratios": ratios,
                "goals": GOALS,
                "coins": durations,
                "at most": COINS,
            }
        )
    )


if __name__ == "__main__":
    main()
