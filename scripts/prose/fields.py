"""Prose with its numbers filled in: fields ``{{ … }}`` of ``docs/results/templates``.

A field is a Jinja expression with functions of keys, and filters::

    {{ score(K) }}                         mean ± SE (median ± SE where the table shows medians)
    {{ diff(K, L) }} {{ ratio(K, L) }}     K minus L, K over L, paired by replicate, ± SE; among several
                                           differences, corrected p ≤ 5 % is in bold
    {{ mean(K) }}                          the mean, where the table shows medians
    {{ n(K) }}                             number of replicates
    {{ printed(K) }} {{ verdict(K) }} {{ apart(K) }}   the published number, its verdict, our difference from it in SE
    {{ ahead(K, L) }} {{ behind(K, L) }} {{ undecided(K, L) }} {{ level(K, L, 0.01) }}   words with tests: scripts.prose.claims
    {{ wins(K, L) }}                       replicates in which K is better than L: 17 of 20
    {{ ranks(K) }}                         table of mean ranks: scripts.prose.ranks
    {{ score(K) | table }}                 rows by columns of all cells that K matches, as a Markdown
                                           table, printed numbers below; diff and ratio likewise
    {{ score(K) | join(score(L)) | table }}    the columns of K and of L in one table
    {{ score(K) | range }}                 least and largest of all cells that K matches
    {{ score(K) | best }}                  the best cell that K matches
    {{ score(K) | agree }}                 number of verdicts "agrees" among comparable ones: 98 of 104
    {{ … | show(decimals=3, percent=true) }}   three decimals; as a percentage
    [print: 0.89] [setting: 100 runs]      a printed number, a setting: shown as it is
    [words: a better prior]                a comparison of other things than scores: shown as it is
    [missing: words | study]               not shown; a line of missing.md

K, L: ``"study:row:column:table"``, see scripts.prose.scores.  ``†``: a run behind the number failed one
of its checks; ``‡``: fewer than five replicates.  SE have one significant digit, or two that begin
with 1.
"""

from __future__ import annotations

import re
from functools import partial

from jinja2 import Environment, StrictUndefined, TemplateError

from runner.record.checks import join_failures
from runner.report.scores.cells import mark_failures
from scripts.prose import cells, claims
from scripts.prose.cells import Scores
from scripts.prose.filters import FILTERS
from scripts.prose.ranks import tabulate_ranks
from scripts.prose.scores import Lookup, ProseError

FIELD = re.compile(r"\{\{(.+?)\}\}", re.S)
MARKER = re.compile(r"\[(print|setting|words|missing): ([^\]]+)\]")
CLAIMS = ("ahead", "behind", "undecided")
EXPRESSIONS = Environment(undefined=StrictUndefined)
EXPRESSIONS.filters |= FILTERS


class Functions:
    """Functions of the fields of one page."""

    def __init__(self, lookup: Lookup):
        self.lookup = lookup

    def score(self, key: str) -> Scores:
        """All cells of a key."""
        matches = self.lookup.find(key)
        return Scores(matches, [cells.estimate_centre(each) for each in matches])

    def mean(self, key: str) -> Scores:
        """All cells of a key, by their means."""
        matches = [each.centre_on("mean") for each in self.lookup.find(key)]
        return Scores(matches, [cells.estimate_centre(each) for each in matches])

    def diff(self, key: str, other: str) -> Scores:
        """Cells of a key minus their partners."""
        return claims.mark_tested(self.lookup, self.lookup.find_pairs(key, other))

    def ratio(self, key: str, other: str) -> Scores:
        """Cells of a key over their partners."""
        pairs = self.lookup.find_pairs(key, other)
        return Scores([first for first, _ in pairs], [cells.estimate_ratio(*p) for p in pairs])

    def n(self, key: str) -> int:
        """Number of replicates."""
        return cells.count_finite(self.lookup.find_one(key))

    def verdict(self, key: str) -> str:
        """Verdict on the published number."""
        return self.lookup.find_one(key).cell.verdict.word

    def printed(self, key: str) -> str:
        """The published number."""
        match = self.lookup.find_one(key)
        if match.cell.number is None:
            raise ProseError(f"{match}: no printed number")
        return match.cell.number.text.replace("-", "−")

    def apart(self, key: str) -> str:
        """Our number minus the published one, in units of the SE."""
        self.printed(key)
        in_se = self.lookup.find_one(key).cell.verdict.in_se or 0.0
        return f"{in_se:+.1f} SE".replace("-", "−")

    def wins(self, key: str, other: str) -> str:
        """Replicates in which the first cell is better."""
        (pair,) = self.lookup.find_pairs(key, other)
        failed = join_failures(*(scored.cell.failed for scored in pair))
        return cells.count_wins(*pair) + mark_failures(failed)

    def ranks(self, key: str) -> str:
        """Table of the mean ranks of all diagrams of a key."""
        return tabulate_ranks(self.lookup, key)


def fill_field(text: str, lookup: Lookup) -> str:
    """One field, without its braces.

    Raises:
        ProseError: the expression is wrong, or a score is missing.
    """
    functions = Functions(lookup)
    words = {name: getattr(functions, name) for name in vars(Functions) if name[0] != "_"}
    words |= {word: partial(claims.claim, lookup, word) for word in CLAIMS}
    words["level"] = partial(claims.claim_level, lookup)
    try:
        expression = EXPRESSIONS.compile_expression(text.strip(), undefined_to_none=False)
        return str(expression(words))
    except (TemplateError, TypeError) as error:
        raise ProseError(f"{{{{{text}}}}}: {error}") from None
