"""Times ACRA on the spam set, n = 54 words and k <= 2 changed: its vectorised sum over X' against
the same sum in loops.

    python -m scripts.bench_acra             # four attacked messages in loops, then the whole test set; one JSON line

The loops go over every origin x in X' of a message, over every z that the attacker could have made
of x, over its words, and over the K draws of (3.12), as Algorithm 3.1 is printed.  On the same
messages both are asserted to agree: within rounding where the attacker is known (variance 0), and
otherwise within five standard errors of the two sets of draws.  Seconds are of the process's own
CPU with one thread, float64.  Spambase where RUNNER_DATA_DIR has it, otherwise the simulated
corpus."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml
from torch import Tensor

import conf
from components import registry
from components.attackers.attacked import Attacked
from components.contracts.roles import Setting
from components.errors import SimulatedDataWarning
from components.inference.defences.acra import ACRA
from components.inference.defences.origins import AdversaryAwareClassifier
from components.problems.supervised import Supervised
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams

LARGEST = 60.0  # seconds that the whole test set may take
GOALS = {"test set within a minute": 1.0, "loops over X'": 100.0}  # least ratio
# a message of more words costs the loops minutes: its origins grow as their square
WORDS = range(4, 13)
Words = tuple[int, ...]


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with its YAML's defaults, some changed."""
    cls = registry.get(role, name)
    with open(os.path.join(conf.__path__[0], role, f"{name}.yaml")) as file:
        defaults = {
            key: value for key, value in yaml.safe_load(file).items() if key not in cls.threat_keys
        }
    return cls.model_validate(defaults | keys)


def data() -> Supervised:
    setting = Setting(
        Path(os.environ.get("RUNNER_DATA_DIR", "data")),
        torch.device("cpu"),
        torch.float64,
        1,
        offline=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatedDataWarning)  # the name that is printed says it
        return component("dataset", "spambase").load(Streams(0), setting)


def classifier(problem: Supervised, **keys: Any) -> tuple[ACRA, AdversaryAwareClassifier]:
    """ACRA and what it learnt."""
    method, rng = component("inference", "acra", **keys), Streams(0)
    state = method.init(component("model", "naive_bayes").build(problem, rng), problem, rng)
    state, _ = method.step(state, problem.train, rng)
    return method, method.posterior(state)


class Loops:
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
        sent = sorted((self.log_odds(z), z) for z in changed(x, 0, self.method.changes))[
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
        for x in changed(seen, 1, self.method.changes):
            p = self.frequency(seen, x)
            weight = math.exp(
                self.log_p(x, 1) + self.log_class[1] - self.log_p(seen, 0) - self.log_class[0]
            )
            rough = (p * self.method.draws + 1) / (self.method.draws + 2)  # never quite 0 or 1
            possible = p > 0 or self.method.variance > 0
            ratio += p * weight
            variance += weight**2 * rough * (1 - rough) / self.method.draws * possible
        return ratio, variance


def changed(x: Words, value: int, most: int) -> Iterator[Words]:
    """x with at most so many of the words that have ``value`` turned into the other."""
    spots = [i for i, xi in enumerate(x) if xi == value]
    for size in range(most + 1):
        for subset in itertools.combinations(spots, size):
            yield tuple(1 - xi if i in subset else xi for i, xi in enumerate(x))


def attacked_spam(problem: Supervised) -> Tensor:
    """Spam of the test set with the two words that make it look most innocent, where that is few
    enough for the loops."""
    _, posterior = classifier(problem)
    attack = component("attacker", "word_insertion", against="undefended")
    x, y = (part[problem.test.y[:, 0] == 1] for part in (problem.test.x, problem.test.y))
    sent = attack.perturb(Attacked(posterior, problem.bounds), x, y, Streams(0), 2)
    return sent[torch.isin(sent.sum(1).long(), torch.tensor(list(WORDS)))]


def odds_of(posterior: AdversaryAwareClassifier, x: Tensor, seed: int) -> Tensor:
    """The same ratio of all messages x [B, D] at once, [B]."""
    with torch.no_grad():
        logits = posterior.predict(x, torch.Generator().manual_seed(seed)).logits[0, :, 0]
    return (logits[:, 1] - logits[:, 0]).exp()


def agree(problem: Supervised, x: Tensor) -> dict[str, float]:
    """Largest differences between both forms on messages x: relative with a known attacker, in
    standard errors otherwise."""
    rows = [tuple(int(v) for v in row) for row in x.tolist()]
    method, posterior = classifier(problem, variance=0.0, draws=1)
    fast = odds_of(posterior, x, 0).tolist()
    literal = Loops(method, posterior, 0)
    assert min(fast) > 1e-30, (
        "a message that nobody can have sent would agree whatever the sums are"
    )
    relative_error = max(
        abs(a - literal.spam(row)[0]) / a for a, row in zip(fast, rows, strict=True)
    )
    method, posterior = classifier(problem)
    fast, z = odds_of(posterior, x, 0).tolist(), []
    literal = Loops(method, posterior, 1)
    for a, row in zip(fast, rows, strict=True):
        ratio, variance = literal.spam(row)
        z.append(abs(a - ratio) / (2 * variance) ** 0.5)
    return {"relative": relative_error, "standard_errors": max(z)}


def clocked(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--messages", type=int, default=4, help="attacked messages that the loops classify"
    )
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds of each")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    problem = data()
    test = problem.test.x
    few = attacked_spam(problem)[: arguments.messages]
    agreement = agree(problem, few)
    assert agreement["relative"] < 1e-8, (
        f"of a known attacker the odds differ by {agreement['relative']:.1e}"
    )
    assert agreement["standard_errors"] < 5, (
        f"odds differ by {agreement['standard_errors']:.1f} standard errors"
    )
    method, posterior = classifier(problem)
    rows = [tuple(int(v) for v in row) for row in few.tolist()]
    odds_of(posterior, few, 0)  # warm-up
    ratios = []
    for seed in range(arguments.repeats):
        loops = Loops(method, posterior, seed)
        fast = clocked(lambda: odds_of(posterior, few, seed))  # noqa: B023
        slow = clocked(lambda: [loops.spam(row) for row in rows])  # noqa: B023
        ratios.append(slow / fast)
    seconds = [clocked(lambda: odds_of(posterior, test, seed)) for seed in range(arguments.repeats)]  # noqa: B023
    ratios, seconds = sorted(ratios), sorted(seconds)
    middle = arguments.repeats // 2
    rate = len(test) / seconds[middle]
    print(
        f"{problem.name}, {len(test):,} test messages of {problem.n_inputs} words, k <= {method.changes}, "
        f"{method.draws} draws of {method.candidates} candidates: {seconds[middle]:.1f} s, {rate:,.0f} messages/s\n"
        f"{len(few)} messages in loops: {ratios[middle]:,.0f} times as long; odds within {agreement['relative']:.0e} of a "
        f"known attacker, {agreement['standard_errors']:.1f} standard errors otherwise"
    )
    cases = {
        "test set within a minute": [
            LARGEST / seconds[middle],
            LARGEST / seconds[-1],
            LARGEST / seconds[0],
        ],
        "loops over X'": [ratios[middle], ratios[0], ratios[-1]],
    }
    line = {"benchmark": "acra", "peer": "a minute; loops over X'", "ratios": cases, "goals": GOALS}
    print(
        json.dumps(
            line | {"messages_per_second": rate, "data": problem.name, "agreement": agreement}
        )
    )


if __name__ == "__main__":
    main()
