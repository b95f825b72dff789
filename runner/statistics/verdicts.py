"""Verdicts on our scores, compared with published numbers."""

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
    """Verdict on our score, compared with the published one: a word, the difference in SE and, if
    the word requires it, a reason.
    """

    word: Word
    # (ours − published)/√(SE² + SE²); None if the two cannot be compared
    in_se: float | None = None
    why: str = ""
    p: float = math.nan  # that ours and the published value differ; NaN: not tested

    @property
    def kind(self) -> Literal["agrees", "better", "worse", ""]:
        """Word that determines the colour of the verdict; empty without a judgement."""
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
    """Compare our score with a published number.

    It agrees if the two-sided p of Student's t test exceeds 5 %; otherwise it is better or worse,
    or differs if the score has no direction.  ``reason`` explains why the two are not comparable,
    or why our score is missing.

    A published SE that rounds to zero is replaced by half a unit of the last digit of the mean.
    The number of a single run is compared with the spread of our runs.  If the table has
    ``within``, a difference of the means up to this value also agrees.  Fewer than five replicates
    are indicative.  ``by_construction`` is True if settings were chosen to match the printed
    number; ``p`` is the p-value corrected for the other numbers of the table.
    """
    if ours is None:
        return Verdict("not run", why=reason)
    if published is None:
        return Verdict("not published", why=reason)
    if reason:
        return Verdict("not comparable", why=reason)
    if ours.n == 0:
        return Verdict("not comparable", why="no replicate has a finite score")
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
    """Our mean minus the published value in units of their combined SE, and the degrees of freedom
    of the t test: n − 1 for our n runs if the published number comes from one run, otherwise those
    of Welch (1947) and Satterthwaite (1946).

    If the number of published runs is unknown, it is assumed to equal the number of our runs."""
    # standard deviation of a single run
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
