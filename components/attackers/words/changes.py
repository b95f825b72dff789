"""Sets of changed words, the resulting mails, and the mail that looks least like spam.

Inputs are binary, class 1 is the malicious one (y_1 of the thesis).  A set of at most k
of D words is a row of k indices; index D, a word that does not exist, encodes no
change, so that sets of every size have one shape.
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
CHUNK = 1 << 16  # mails that a victim judges together


@functools.lru_cache(maxsize=8)
def change_sets(n_words: int, most: int) -> Tensor:
    """Every set of at most ``most`` of D words, the smaller before the larger, [M, most]; M =
    Σ_{i≤most} D!/i!(D−i)!."""
    rows: list[tuple[int, ...]] = []
    for size in range(most + 1):
        rest = (n_words,) * (most - size)
        rows.extend(words + rest for words in itertools.combinations(range(n_words), size))
    return torch.tensor(rows, dtype=torch.long).reshape(len(rows), most)


def possible(x: Tensor, sets: Tensor, direction: Direction) -> Tensor:
    """Which sets [M, k] change a mail x [B, D] as a whole: a word that is there cannot be added.
    [B, M] bool"""
    if direction == "flip":
        return torch.ones(len(x), len(sets), dtype=torch.bool, device=x.device)
    # [B, D + 1]
    absent = torch.cat([x < 0.5, torch.ones(len(x), 1, dtype=torch.bool, device=x.device)], 1)
    return absent[:, sets].all(-1)


def flip_words(x: Tensor, sets: Tensor) -> Tensor:
    """x [B, D] with the words of each set [B, k] flipped. [B, D]"""
    padded = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
    return padded.scatter(1, sets, 1 - padded.gather(1, sets))[:, :-1]


def log_odds(predictive: Categorical) -> Tensor:
    """log p(y_1|x)/(1 − p(y_1|x)) [B]: as p(y_1|x) orders mails, where that has long been rounded
    to 1."""
    log_probs = predictive.log_probs[:, 0]  # [B, C]
    others = torch.cat([log_probs[:, :MALICIOUS], log_probs[:, MALICIOUS + 1 :]], 1)
    return log_probs[:, MALICIOUS] - others.logsumexp(1)


def victim_as_attacked(victim: Victim, against: Against) -> Victim:
    """The victim, or what lies under its defence where the attacker does not know of one."""
    posterior = victim.posterior
    return (
        victim.with_posterior(posterior.undefended)
        if against == "undefended" and isinstance(posterior, Defends)
        else victim
    )


def log_odds_malicious(victim: Victim, x: Tensor, generator: torch.Generator) -> Tensor:
    """Log odds of the victim that each mail of x [B, D] is malicious, [B]."""
    with torch.no_grad():
        return torch.cat([log_odds(victim.answers(part, generator)) for part in x.split(CHUNK)])


def malicious(y: Tensor) -> Tensor:
    """Mask [B] bool of the mails that an attacker changes: the malicious class.

    This is an integrity violation.
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

    All sets of at most ``exact`` words are tried; beyond, words are added to the best of them one
    at a time, each the best in its turn.  Of equals the z of fewer changes is kept.  [B, D]

    Source: Gallego (2021), eq. (3.11)."""
    first = min(most, exact)
    x = pick_least_malicious(victim, x, change_sets(x.shape[1], first), direction, generator)
    for _ in range(most - first):
        x = pick_least_malicious(victim, x, change_sets(x.shape[1], 1), direction, generator)
    return x


def pick_least_malicious(
    victim: Victim, x: Tensor, sets: Tensor, direction: Direction, generator: torch.Generator
) -> Tensor:
    """The least malicious of the mails that the sets [M, k] make of each row of x [B, D]; the first
    of equals. [B, D]"""
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
    """The control: ``most`` words of every malicious mail drawn at random among those that can be
    changed. [B, D]"""
    if most == 0:
        return x.clone()
    order = torch.rand(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(
        x.device
    )
    order = order if direction == "flip" else order + 2 * x  # present words come last
    words = order.argsort(1)[:, : min(most, x.shape[1])]
    other = x.scatter(1, words, 1 - x.gather(1, words) if direction == "flip" else 1.0)
    return torch.where(malicious(y)[:, None], other, x)
