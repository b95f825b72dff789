"""Games of agent objects with numpy tables, one per seed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from scripts.benchmarks.harness import Measured


class Level2:
    """An agent with the operations of ARAMARL's published ``Level2QAgent``."""

    def __init__(self, actions: int, states: int):
        self.q = np.zeros((states, actions, 2))
        self.opponent_q = np.zeros((states, 2, actions))
        self.counts = np.ones(actions)

    def guess(self, s: int) -> int:
        if np.random.rand() < 0.1:
            return int(np.random.choice(2))
        return int(np.argmax(np.dot(self.opponent_q[s], self.counts / np.sum(self.counts))))

    def act(self, s: int) -> int:
        if np.random.rand() < 0.1:
            return int(np.random.choice(self.q.shape[1]))
        return int(np.argmax(self.q[s, :, self.guess(s)]))

    def update(
        self, s: int, moves: tuple[int, int], gains: tuple[float, float], after: int
    ) -> None:
        (a, b), (r_a, r_b) = moves, gains
        self.counts[a] += 1
        ahead = np.max(np.dot(self.opponent_q[after], self.counts / np.sum(self.counts)))
        self.opponent_q[s, b, a] = 0.9 * self.opponent_q[s, b, a] + 0.1 * (r_b + 0.8 * ahead)
        self.q[s, a, b] = 0.9 * self.q[s, a, b] + 0.1 * (
            r_a + 0.8 * np.max(self.q[after, :, self.guess(after)])
        )


def play(problem: Any, episodes: int) -> Measured:
    """Seconds per round of an agent object against an exponential smoother."""
    rules: Any = problem.environment
    r_a = rules.reward_a.numpy()
    r_b = rules.reward_b[..., 0].numpy()
    after = rules.transition.numpy()
    is_terminal = np.zeros(len(r_a), bool) if rules.ends is None else rules.ends.numpy()
    touches = rules.touches.numpy()
    learner = Level2(r_a.shape[1], len(r_a))
    p = np.full(2, 0.5)
    rounds = 0
    start = time.process_time()
    for _ in range(episodes):
        s = rules.start
        for _ in range(rules.horizon):
            a = learner.act(s)
            b = int(np.argmin(p))
            s_next = int(after[s, a, b])
            learner.update(s, (a, b), (r_a[s, a, b], r_b[s, a, b]), s_next)
            if touches[s, a].any():
                p = 0.75 * p + 0.25 * touches[s, a]
            s = s_next
            rounds = rounds + 1
            if is_terminal[s]:
                break
    return Measured((time.process_time() - start) / rounds)
