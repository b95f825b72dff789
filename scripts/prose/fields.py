"""Prose with its numbers filled in: fields ``{{ … }}`` of ``docs/results/**/*.md.in``.

A field is a Jinja expression of functions of keys, and of filters::

    {{ score(K) }}                         mean ± SE (median ± SE where the table shows medians)
    {{ diff(K, L) }} {{ ratio(K, L) }}     K less L, K over L, paired by replicate, ± SE
    {{ mean(K) }}                          the mean, where the table shows medians
    {{ n(K) }}                             number of replicates
    {{ printed(K) }} {{ verdict(K) }} {{ apart(K) }}   the published number, its verdict, ours less it in SE
    {{ in_se(K, L) }} {{ p(K, L) }}        the difference in SE; p of its two-sided test
    {{ wins(K, L) }}                       replicates in which K is better than L: 17 of 20
    {{ rank(K) }} {{ ranks(K) }} …         mean ranks: scripts.prose.ranks
    {{ score(K) | table }}                 rows by columns of all cells that K matches, as a Markdown
                                           table, printed numbers below; diff and ratio likewise
    {{ score(K) | join(score(L)) | table }}    the columns of K and those of L in one table
    {{ score(K) | range }}                 least and largest of all cells that K matches
    {{ score(K) | best }}                  the best cell that K matches
    {{ score(K) | agree }}                 how many verdicts are "agrees", of those that compare: 98 of 104
    {{ … | show(decimals=3, percent=true) }}   three decimals; as a percentage
    [print: 0.89] [setting: 100 runs]      a number of print, a setting: shown as it is
    [missing: words | study]               shown nowhere; a line of missing.md

K, L: ``"study:row:column:table"``, see scripts.prose.scores.  ``†``: a run behind the number failed one
of its checks; ``‡``: fewer than five replicates.  SE have one significant digit, or two that begin
with 1.
"""

from __future__ import annotations

import re

from jinja2 import Environment, StrictUndefined, TemplateError

from runner.record.checks import join_failures
from runner.report.scores.cells import mark_failures
from scripts.prose import cells
from scripts.prose.cells import Scores
from scripts.prose.filters import FILTERS
from scripts.prose.ranks import find_diagram, find_diagrams, format_rank, tabulate_ranks
from scripts.prose.scores import Found, Lookup, ProseError

FIELD = re.compile(r"\{\{(.+?)\}\}", re.S)
MARKER = re.compile(r"\[(print|setting|missing): ([^\]]+)\]")
EXPRESSIONS = Environment(undefined=StrictUndefined)
EXPRESSIONS.filters |= FILTERS


class Functions:
    """Functions of the fields of one page."""

    def __init__(self, lookup: Lookup):
        self.lookup = lookup

    def score(self, key: str) -> Scores:
        """All cells of a key."""
        found = self.lookup.find(key)
        return Scores(found, [cells.estimate_centre(each) for each in found])

    def mean(self, key: str) -> Scores:
        """All cells of a key, by their means."""
        found = [each.centre_on("mean") for each in self.lookup.find(key)]
        return Scores(found, [cells.estimate_centre(each) for each in found])

    def diff(self, key: str, other: str) -> Scores:
        """Cells of a key less their partners."""
        pairs = self.lookup.find_pairs(key, other)
        return Scores([first for first, _ in pairs], [cells.estimate_difference(*p) for p in pairs])

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
        found = self.lookup.find_one(key)
        if found.cell.number is None:
            raise ProseError(f"{found}: nothing is printed")
        return found.cell.number.text.replace("-", "−")

    def apart(self, key: str) -> str:
        """Ours less the published number, in its SE."""
        self.printed(key)
        return format_in_se(self.lookup.find_one(key).cell.verdict.in_se or 0.0)

    def in_se(self, key: str, other: str) -> str:
        """The difference of two cells in its SE."""
        pair = self.lookup.find_pair(key, other)
        return format_in_se(cells.pair_cells(*pair).in_se) + mark_doubt(*pair)

    def p(self, key: str, other: str) -> str:
        """p of the test that two cells do not differ."""
        pair = self.lookup.find_pair(key, other)
        return f"{cells.pair_cells(*pair).p:.2g}{mark_doubt(*pair)}"

    def wins(self, key: str, other: str) -> str:
        """Replicates in which the first cell is better."""
        pair = self.lookup.find_pair(key, other)
        return cells.count_wins(*pair) + mark_doubt(*pair)

    def rank(self, key: str) -> str:
        """Mean rank of a row."""
        return format_rank(find_diagram(self.lookup, key), self.lookup.read_key(key)[1])

    def ranks(self, key: str) -> str:
        """Table of the mean ranks of all diagrams of a key."""
        return tabulate_ranks(find_diagrams(self.lookup, key))

    def blocks(self, key: str) -> int:
        """Number of blocks of a diagram."""
        return find_diagram(self.lookup, key).n_blocks

    def critical(self, key: str) -> str:
        """Critical difference of a diagram."""
        return find_diagram(self.lookup, key).critical


def format_in_se(difference: float) -> str:
    """``+2.1 SE``."""
    return f"{difference:+.1f} SE".replace("-", "−")


def mark_doubt(first: Found, second: Found) -> str:
    """† or ¶ if a run behind one of two cells failed a check."""
    return mark_failures(join_failures(first.cell.failed, second.cell.failed))


def fill_field(text: str, lookup: Lookup) -> str:
    """One field, without its braces.

    Raises:
        ProseError: the expression is wrong, or a score is missing.
    """
    functions = Functions(lookup)
    words = {name: getattr(functions, name) for name in vars(Functions) if name[0] != "_"}
    try:
        expression = EXPRESSIONS.compile_expression(text.strip(), undefined_to_none=False)
        return str(expression(words))
    except (TemplateError, TypeError) as error:
        raise ProseError(f"{{{{{text}}}}}: {error}") from None
