"""Verdicts: our scores against a published number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from components.metrics.names import ScoreDirection
from runner.statistics.paired_tests import LEVEL, MIN_REPLICATES, Summary, t_p
from runner.statistics.published import PublishedNumber

Word = Literal[
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


@dataclass(frozen=True)
class Verdict:
    """Ours against the published value: a word, the difference in SE, and why where the word needs
    it."""

    word: Word
    # (ours − published)/√(SE² + SE²); None: the two cannot be compared
    in_se: float | None = None
    why: str = ""
    p: float = math.nan  # that ours and the published value differ; NaN: not tested

    @property
    def kind(self) -> Literal["agrees", "better", "worse", ""]:
        """Meaning of its colour; empty: no judgement."""
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
    p: float | None = None,
) -> Verdict:
    """Agrees: the two-sided p of Student's t is above 5 %; where neither side is better it differs
    otherwise.  ``reason`` is why the two cannot be compared (or why ours is missing).

    A published SE that rounds to nothing counts as half a unit of the last digit of its mean.  A
    number of a single run is compared with one of ours.  If the table has ``within``, it also
    agrees if our mean is as near as that.  Fewer than five replicates are indicative.
    ``by_construction``: settings were chosen in view of the printed number; ``p``: corrected for the
    other numbers of the table."""
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
    in_se, freedom = _measure(published, ours, ours.se)
    if ours.n < MIN_REPLICATES:
        return Verdict("indicative", in_se, f"{ours.n} replicates")
    p = t_p(in_se, freedom) if p is None else p
    is_near = abs(ours.mean - published.mean) <= (published.within or 0.0)
    if p > LEVEL or is_near:
        word: Word = "agrees by construction" if by_construction else "agrees"
    elif better is None:
        word = "differs"
    else:
        word = "better" if (in_se < 0) == (better == "lower") else "worse"
    return Verdict(word, in_se, ours.note, p)


def _measure(published: PublishedNumber, ours: Summary, se: float) -> tuple[float, float]:
    """Ours less the published value in their combined SE, and the degrees of freedom of its t test:
    n − 1 for our n runs if the published number comes from one run, else after Welch (1947) and
    Satterthwaite (1946).

    If the number of printed runs is unknown, it is taken to equal ours."""
    # one of ours has this standard deviation
    of_a_run = se * math.sqrt(ours.n) if published.one_run else 0.0
    combined = math.hypot(max(published.uncertainty, of_a_run), se)
    in_se = (ours.mean - published.mean) / combined
    if published.one_run:
        return in_se, ours.n - 1
    published_term = (
        0.0 if published.se is None else published.se**4 / max(1, (published.runs or ours.n) - 1)
    )
    spread = se**4 / (ours.n - 1) + published_term
    return in_se, combined**4 / spread if spread else math.inf
