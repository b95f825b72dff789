"""Small spam problems, fitted classifiers and literal words for tests of attacks on words and of
defences."""

from __future__ import annotations

import itertools
import math

import torch
from support.runs.configured import component, generator, uniform

from components.contracts.problems import Batch
from components.posteriors.fitted import FittedEstimator
from components.problems.supervised import Supervised
from runner.execution.rng import Streams


def words(n=120, n_words=6, seed=0) -> Supervised:
    """Binary words with frequencies that depend on the class, where 1 is spam."""
    g = generator(seed)
    y = (torch.rand(2 * n, 1, generator=g) < 0.4).long()
    p = uniform(g, 2, n_words)
    x = (uniform(g, 2 * n, n_words) < p[y[:, 0]]).double()
    mask = torch.ones(2 * n, 1, dtype=torch.bool)
    train, test = (Batch(x[rows], y[rows], mask[rows], 1.0) for rows in (slice(n), slice(n, None)))
    return Supervised(
        "words", "binary", train, test, None, 2, ["spam"], bounds=(0.0, 1.0), domain="binary"
    )


def fit_estimator(problem: Supervised, name="naive_bayes", **options) -> FittedEstimator:
    model = component("model", name, **options).build(problem, Streams(0))
    return FittedEstimator(model, model.fit(problem.train, 0))


def neighbours(x: tuple[int, ...], most: int, direction: str) -> list[tuple[int, ...]]:
    """Every z reachable from x, by enumeration of all 2^D emails."""
    out = []
    for z in itertools.product((0, 1), repeat=len(x)):
        pairs = list(zip(x, z, strict=True))
        allowed = direction == "flip" or all(b >= a for a, b in pairs)
        if allowed and sum(a != b for a, b in pairs) <= most:
            out.append(z)
    return out


def log_joint(posterior: FittedEstimator, x: tuple[int, ...], c: int) -> float:
    """log p(c) + Σ_i log p(x_i|c), word by word."""
    f = posterior.fitted
    value = float(f["log_class"][c])
    for i, word in enumerate(x):
        theta = math.exp(float(f["log_present"][c, i]))
        value += math.log(theta if word else 1 - theta)
    return value


def log_odds(posterior: FittedEstimator, x: tuple[int, ...]) -> float:
    return log_joint(posterior, x, 1) - log_joint(posterior, x, 0)


def rows(x: torch.Tensor) -> list[tuple[int, ...]]:
    return [tuple(int(v) for v in row) for row in x]


def accuracy(posterior, x: torch.Tensor, y: torch.Tensor) -> float:
    guess = posterior.predict(x, torch.Generator()).probs[:, 0].argmax(1)
    return float((guess == y[:, 0]).double().mean())
