"""ACRA and attacked messages of the spam set."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from components.attackers.attacked import Attacked
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.workloads import component

# least and most words of a message: the loops' origins grow as their square
WORDS = (4, 12)


def learn(problem: Supervised, **keys: Any) -> tuple[Any, Any]:
    """ACRA and its posterior."""
    method, rng = component("inference", "acra", **keys), Streams(0)
    state = method.init(component("model", "naive_bayes").build(problem, rng), problem, rng)
    state, _ = method.step(state, problem.train, rng)
    return method, method.posterior(state)


def attack_spam(problem: Supervised) -> Tensor:
    """Short spam of the test set with the two words that make it look most innocent."""
    _, posterior = learn(problem)
    attack = component("attacker", "word_insertion", against="undefended")
    x, y = (part[problem.test.y[:, 0] == 1] for part in (problem.test.x, problem.test.y))
    messages = attack.perturb(Attacked(posterior, problem.bounds), x, y, Streams(0), 2)
    n_words = messages.sum(1)
    return messages[(n_words >= WORDS[0]) & (n_words <= WORDS[1])]


def compute_odds(posterior: Any, x: Tensor, seed: int) -> Tensor:
    """Odds of spam of all messages x [B, D] together, [B]."""
    with torch.no_grad():
        logits = posterior.predict(x, torch.Generator().manual_seed(seed)).logits[0, :, 0]
    return (logits[:, 1] - logits[:, 0]).exp()
