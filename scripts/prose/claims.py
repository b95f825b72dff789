"""Words that compare rows, and the tests that support them.

    {{ ahead(K, L) }} {{ behind(K, L) }}   K is better, or worse, than L: corrected p ≤ 5 %
    {{ undecided(K, L) }}          corrected p > 5 %, or too few replicates for a test
    {{ level(K, L, within) }}      the 95 % interval of the difference lies within ± ``within``

Each prints the difference ± SE and its p, or for several pairs the p nearest to 5 %.  A word that
the test does not support is an error of the page.  p is taken from the study's page: Holm's correction
covers all rows and columns of the table against the study's reference row, or against L if neither is
the reference (for two columns: all cells against L's column).  Otherwise it covers the field's pairs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

from scipy.stats import t as student_t

from runner.report.results import Tests, compare_with
from runner.statistics.paired_tests import LEVEL, MIN_PAIRS, PairedDifference, holm
from scripts.prose.cells import Scores, estimate_difference, pair_cells, read_direction
from scripts.prose.scores import KeyedCell, Lookup, ProseError, load_scores, load_tables

Pairs = list[tuple[KeyedCell, KeyedCell]]


@cache
def compare_table(folder: Path, study: str, table: str, to: str, by_row: bool) -> Tests:
    """All cells of a table compared with the cells of one row or one column."""
    return compare_with(load_tables(folder, study)[table], to, by_row)


def compare_pairs(lookup: Lookup, pairs: Pairs) -> list[PairedDifference]:
    """Differences of all pairs, with the p of the studies' pages where both cells share a table and a
    row or a column."""
    tests = holm({i: pair_cells(*pair) for i, pair in enumerate(pairs)})
    return [
        replace(tests[i], p_holm=find_page_p(lookup.folder, first, second) or tests[i].p_holm)
        for i, (first, second) in enumerate(pairs)
    ]


def find_page_p(folder: Path, first: KeyedCell, second: KeyedCell) -> float | None:
    """The corrected p of two cells on the page of their study; None if no row or
    column has both."""
    study, row, column, table = first.parts
    by_row = column == second.parts[2]
    if (study, table) != (second.parts[0], second.parts[3]) or not (
        by_row or row == second.parts[1]
    ):
        return None
    if by_row and row == load_scores(folder, study)[0].reference:
        first, second = second, first
    to = second.parts[1] if by_row else second.parts[2]
    return compare_table(folder, study, table, to, by_row)[first.parts[1:3]].p_holm


def mark_tested(lookup: Lookup, pairs: Pairs) -> Scores:
    """Differences, in bold where corrected p ≤ 5 %."""
    tests = compare_pairs(lookup, pairs)
    estimates = [
        replace(estimate_difference(*pair), is_bold=test.p_holm <= LEVEL and len(pairs) > 1)
        for pair, test in zip(pairs, tests, strict=True)
    ]
    return Scores([first for first, _ in pairs], estimates)


def claim(lookup: Lookup, word: str, key: str, other: str) -> str:
    """Differences of the cells of a key from their partners; ``word`` describes all of them.

    Raises:
        ProseError: a test supports another word.
    """
    pairs = lookup.find_pairs(key, other)
    tests = compare_pairs(lookup, pairs)
    for (first, second), test in zip(pairs, tests, strict=True):
        if (supported := find_word(first, test)) != word:
            shown = describe(first, second, test)
            raise ProseError(f"{first} minus {second} is {supported}, not {word}: {shown}")
    if len(pairs) == 1:
        return describe(*pairs[0], tests[0])
    p = [test.p_holm for test in tests if not math.isnan(test.p_holm)]
    if not p:
        return "too few replicates"
    return f"p ≥ {min(p):.2g}" if word == "undecided" else f"p ≤ {max(p):.2g}"


def find_word(first: KeyedCell, test: PairedDifference) -> str:
    """The word for a tested difference of a cell from another one."""
    if not test.p_holm <= LEVEL:
        return "undecided"
    is_less = test.difference < 0
    return "ahead" if is_less == (read_direction(first) == "lower") else "behind"


def describe(first: KeyedCell, second: KeyedCell, test: PairedDifference) -> str:
    """``−0.04 ± 0.01, p 0.02``."""
    p = "p < 0.001" if test.p_holm < 0.001 else f"p {test.p_holm:.2g}"
    shown = "too few replicates" if math.isnan(test.p_holm) else p
    return f"{estimate_difference(first, second)}, {shown}"


def claim_level(lookup: Lookup, key: str, other: str, within: float) -> str:
    """Differences that lie within a bound with 95 % confidence."""
    pairs = lookup.find_pairs(key, other)
    for first, second in pairs:
        pair = pair_cells(first, second)
        quantile = student_t.isf(LEVEL / 2, pair.n - 1) if pair.n >= MIN_PAIRS else math.inf
        reach = abs(pair.difference) + quantile * (pair.se or 0.0)
        if not reach <= within:
            raise ProseError(f"{first} may be {reach:.3g} from {second}, more than {within}")
    shown = str(estimate_difference(*pairs[0])) if len(pairs) == 1 else "differences"
    return f"{shown}, with 95 % confidence within ±{within:g}"
