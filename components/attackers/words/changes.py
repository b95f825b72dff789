"""Sets of changed words, the resulting emails, and the least malicious email.

Inputs are binary, and class 1 is the malicious one (y_1 of the thesis).  A set of at most k of D
words is a row of k indices; index D encodes no change, so that sets of all sizes have the same
shape.
"""

from __future__ import annotations

import functools
import itertools

import torch
from torch import Tensor

from components.contracts.posteriors import Defends
from components.contracts.predictive import Categorical
from components.contracts.victim import Against, Direction, Victim

MALICIOUS = 1
CHUNK = 1 << 16  # emails evaluated together


@functools.lru_cache(maxsize=8)
def change_sets(n_words: int, most: int) -> Tensor:
    """All sets of at most ``most`` of D words, smaller ones first, [M, most]; M =
    Σ_{i≤most} D!/i!(D−i)!."""
    rows: list[tuple[int, ...]] = []
    for size in range(most + 1):
        rest = (n_words,) * (most - size)
        rows.extend(words + rest for words in itertools.combinations(range(n_words), size))
    return torch.tensor(rows, dtype=torch.long).reshape(len(rows), most)


def possible(x: Tensor, sets: Tensor, direction: Direction) -> Tensor:
    """Indicator of sets [M, k] that can be applied to an email x [B, D]: present words cannot be
    added. [B, M] bool"""
    if direction == "flip":
        return x.new_ones(len(x), len(sets), dtype=torch.bool)
    # [B, D + 1]
    absent = torch.cat([x < 0.5, x.new_ones(len(x), 1, dtype=torch.bool)], 1)
    return absent[:, sets].all(-1)


def flip_words(x: Tensor, sets: Tensor) -> Tensor:
    """x [B, D] with the words of each set [B, k] flipped. [B, D]"""
    padded = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
    return padded.scatter(1, sets, 1 - padded.gather(1, sets))[:, :-1]


def log_odds(predictive: Categorical) -> Tensor:
    """log p(y_1|x)/(1 − p(y_1|x)) [B], which orders emails even if p(y_1|x) rounds to 1."""
    log_probs = predictive.log_probs[:, 0]  # [B, C]
    others = torch.cat([log_probs[:, :MALICIOUS], log_probs[:, MALICIOUS + 1 :]], 1)
    return log_probs[:, MALICIOUS] - others.logsumexp(1)


def victim_as_attacked(victim: Victim, against: Against) -> Victim:
    """The victim, or the model under its defence if the attacker ignores the defence."""
    posterior = victim.posterior
    return (
        victim.with_posterior(posterior.undefended)
        if against == "undefended" and isinstance(posterior, Defends)
        else victim
    )


def log_odds_malicious(victim: Victim, x: Tensor, generator: torch.Generator) -> Tensor:
    """The victim's log odds that each email of x [B, D] is malicious, [B]."""
    with torch.no_grad():
        return torch.cat([log_odds(victim.answers(part, generator)) for part in x.split(CHUNK)])


def malicious(y: Tensor) -> Tensor:
    """Mask [B] bool of the emails that an attacker changes, the malicious class (integrity
    violation).
    """
    return y[:, 0] == MALICIOUS


def least_malicious(
    victim: Victim,
    x: Tensor,
    most: int,
    exact: int,
    direction: Direction,
    generator: torch.Generator,
) -> Tensor:
    """x' = argmin_z p(y_1|z) over the z that differ from x [B, D] in at most ``most`` words (3.11).

    All sets of at most ``exact`` words are evaluated; further words are added greedily to the best
    set.  Ties are resolved in favour of fewer changes. [B, D]

    Source: Gallego (2021), eq. (3.11)."""
    first = min(most, exact)
    x = pick_least_malicious(victim, x, change_sets(x.shape[1], first), direction, generator)
    for _ in range(most - first):
        x = pick_least_malicious(victim, x, change_sets(x.shape[1], 1), direction, generator)
    return x


def pick_least_malicious(
    victim: Victim, x: Tensor, sets: Tensor, direction: Direction, generator: torch.Generator
) -> Tensor:
    """The least malicious of the emails from the sets [M, k] for each row of x [B, D]; ties go to
    the first. [B, D]
    """
    out = []
    rows = max(1, CHUNK // len(sets))
    sets = sets.to(x.device)
    for part in x.split(rows):
        can = possible(part, sets, direction)  # [b, M]
        mail, set_index = can.nonzero(as_tuple=True)
        value = x.new_full(can.shape, torch.inf)
        value[can] = log_odds_malicious(victim, flip_words(part[mail], sets[set_index]), generator)
        out.append(flip_words(part, sets[value.argmin(1)]))
    return torch.cat(out)


def random_changes(
    x: Tensor, y: Tensor, most: int, direction: Direction, generator: torch.Generator
) -> Tensor:
    """The control: random changes of ``most`` words of every malicious email, among the possible
    ones. [B, D]"""
    if most == 0:
        return x.clone()
    order = torch.rand(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(
        x.device
    )
    order = order if direction == "flip" else order + 2 * x  # present words come last
    words = order.argsort(1)[:, : min(most, x.shape[1])]
    other = x.scatter(1, words, 1 - x.gather(1, words) if direction == "flip" else 1.0)
    return torch.where(malicious(y)[:, None], other, x)
