"""ACRA in loops: Algorithm 3.1 as it is printed, one message at a time."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from components.inference.defences.acra import ACRA
from components.inference.defences.origins import AdversaryAwareClassifier

Words = tuple[int, ...]


class MessageLoops:
    """Algorithm 3.1 for one message at a time, with Python's own numbers and random draws."""

    def __init__(self, method: ACRA, posterior: AdversaryAwareClassifier, seed: int):
        f = posterior.undefended.fitted
        present, absent = f["log_present"].tolist(), f["log_absent"].tolist()
        self.log_word = [
            list(zip(absent[c], present[c], strict=True)) for c in (0, 1)
        ]  # log p(x_i|c) by class, word, x_i
        self.log_class, self.method, self.draw = (
            f["log_class"].tolist(),
            method,
            random.Random(seed),
        )

    def log_p(self, x: Words, c: int) -> float:
        """log p(x|y_c), word by word."""
        return sum(log_word[xi] for log_word, xi in zip(self.log_word[c], x, strict=True))

    def log_odds(self, x: Words) -> float:
        return self.log_p(x, 1) + self.log_class[1] - self.log_p(x, 0) - self.log_class[0]

    def belief(self, log_odds: float) -> float:
        """Log odds of a draw of P^A ~ Beta of that mean and of ``variance`` times the largest
        variance without a pole."""
        share = self.method.variance
        if share == 0:
            return log_odds
        small = 1 / (1 + math.exp(abs(log_odds)))
        first = (1 + small) / share - small  # of the less likely side
        low, high = (
            math.log(self.draw.gammavariate(d, 1.0))
            for d in (first, first * math.exp(abs(log_odds)))
        )
        return low - high if log_odds <= 0 else high - low

    def frequency(self, seen: Words, x: Words) -> float:
        """p̂(x'|x, y_1): the share of K draws in which x' is the least of the candidates of x."""
        sent = sorted((self.log_odds(z), z) for z in generate_changes(x, 0, self.method.changes))[
            : self.method.candidates
        ]
        odds = [value for value, _ in sent]
        if seen not in [z for _, z in sent]:
            return 0.0
        count = 0
        for _ in range(self.method.draws):
            beliefs = [self.belief(value) for value in odds]
            count += sent[min(range(len(sent)), key=beliefs.__getitem__)][1] == seen
        return count / self.method.draws

    def spam(self, seen: Words) -> tuple[float, float]:
        """p(y_1) Σ_{x ∈ X'} p̂(x'|x, y_1) p(x|y_1) over p(y_2) p(x'|y_2), and the variance of that
        from its draws."""
        ratio = variance = 0.0
        for x in generate_changes(seen, 1, self.method.changes):
            p = self.frequency(seen, x)
            weight = math.exp(
                self.log_p(x, 1) + self.log_class[1] - self.log_p(seen, 0) - self.log_class[0]
            )
            rough = (p * self.method.draws + 1) / (self.method.draws + 2)  # never quite 0 or 1
            possible = p > 0 or self.method.variance > 0
            ratio += p * weight
            variance += weight**2 * rough * (1 - rough) / self.method.draws * possible
        return ratio, variance


def generate_changes(x: Words, value: int, most: int) -> Iterator[Words]:
    """x with at most so many of the words that have ``value`` turned into the other."""
    spots = [i for i, xi in enumerate(x) if xi == value]
    for size in range(most + 1):
        for subset in itertools.combinations(spots, size):
            yield tuple(1 - xi if i in subset else xi for i, xi in enumerate(x))
