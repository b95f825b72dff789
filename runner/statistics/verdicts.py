"""Verdicts: our scores against a published number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from components.metrics.names import ScoreDirection
from runner.statistics.paired_tests import MIN_REPLICATES, Summary
from runner.statistics.published import PublishedNumber


@dataclass(frozen=True)
class Verdict:
    """Ours against the published value: a word, the difference in SE, and why where the word needs
    it."""

    word: Literal[
        "agrees",
        "agrees by construction",
        "better",
        "worse",
        "differs",
        "indicative",
        "not comparable",
        "not run",
        "not published",
    ]
    # (ours − published)/√(SE² + SE²); None: the two cannot be compared
    in_se: float | None = None
    why: str = ""

    @property
    def kind(self) -> Literal["agrees", "better", "worse", ""]:
        """What its colour says; empty: nothing is judged."""
        if self.word in ("agrees", "agrees by construction"):
            return "agrees"
        if self.word in ("worse", "differs"):
            return "worse"
        return "better" if self.word == "better" else ""

    def __str__(self) -> str:
        return f"{self.word} ({self.why})" if self.why else self.word


def judge(
    published: PublishedNumber | None,
    ours: Summary | None,
    better: ScoreDirection | None,
    reason: str = "",
    by_construction: bool = False,
) -> Verdict:
    """Agrees: within 2 combined SE; where neither side is better it differs otherwise.  ``reason``
    is why the two cannot be compared (or why ours is missing).

    A published SE that rounds to nothing counts as half a unit of the last digit of its mean.  A
    number of a single run agrees where it lies among ours, however they are spread: of n + 1 alike
    it is the least or the largest with probability 2/(n + 1).  Where the table says ``within``, it
    also agrees if our mean is as near as that.  Fewer than five replicates are indicative.
    ``by_construction``: settings were chosen in view of the printed number."""
    if ours is None:
        return Verdict("not run", why=reason)
    if published is None:
        return Verdict("not published", why=reason)
    if reason:
        return Verdict("not comparable", why=reason)
    if ours.n == 0:
        return Verdict("not comparable", why="no replicate gave a finite score")
    if ours.se is None:
        return Verdict("not comparable", why="one replicate has no standard error")
    # one of ours has this standard deviation
    of_a_run = ours.se * math.sqrt(ours.n) if published.one_run else 0.0
    combined = math.hypot(max(published.uncertainty, of_a_run), ours.se)
    in_se = (ours.mean - published.mean) / combined
    among = ours.low - published.rounding <= published.mean <= ours.high + published.rounding
    if published.within is not None:
        among = among or abs(ours.mean - published.mean) <= published.within
    if ours.n < MIN_REPLICATES:
        return Verdict("indicative", in_se, f"{ours.n} replicates")
    if among if published.one_run else abs(in_se) <= 2.0:
        return Verdict("agrees by construction" if by_construction else "agrees", in_se, ours.note)
    if better is None:
        return Verdict("differs", in_se, ours.note)
    return Verdict("better" if (in_se < 0) == (better == "lower") else "worse", in_se, ours.note)
