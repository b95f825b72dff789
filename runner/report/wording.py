"""Sentences shared by the pages, figures and LaTeX tables of a report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from runner.report.scores.cells import Cell, TableLayout, list_cells, mark_failures
from runner.statistics.paired_tests import LEVEL, MIN_PAIRS
from runner.study.table_specs import CENTRES

TEST = "two-sided t test, paired by replicate"
OVERLAP_TEST = (
    "two-sided t test, paired by replicate, with standard errors corrected for splits that share rows "
    "(Nadeau and Bengio, 2003)"
)
MOST_NAMES = 4  # of rows in the first sentence
CORRECTION = "Holm's correction for all tests of the table"


def describe_test(splits_overlap: bool) -> str:
    """Description of the paired test of rows."""
    return OVERLAP_TEST if splits_overlap else TEST


def describe_bold(splits_overlap: bool) -> str:
    """Explanation of bold type."""
    return (
        "the best row of a column and all that do not differ significantly from it "
        f"({describe_test(splits_overlap)}; {100 * LEVEL:.0f} % after Holm's correction for the rows of a column; "
        f"rows with fewer than {MIN_PAIRS} replicates are excluded)"
    )


def format_count(n: int, noun: str) -> str:
    """``1 run``, ``6 runs``."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def format_range(counts: Sequence[int], noun: str) -> str:
    """``5 to 20 replicates``, ``1 replicate``; empty without counts."""
    if not counts:
        return ""
    low = min(counts)
    high = max(counts)
    return format_count(high, noun) if low == high else f"{low} to {format_count(high, noun)}"


def describe_runs(sizes: Sequence[int]) -> str:
    """``1 run per row``, ``99 or 100 runs per row``."""
    counts = " or ".join(map(str, sizes))
    return f"{counts} {'run' if list(sizes) == [1] else 'runs'} per row"


def describe_ours(laid: TableLayout) -> str:
    """``mean(SE) of 6 replicates``."""
    counts = format_range(laid.replicates, "replicate")
    return f"{CENTRES[laid.spec.centre]} of {counts}" if counts else CENTRES[laid.spec.centre]


def describe_outcome(tables: Sequence[TableLayout], reference: str | None) -> str:
    """First sentences of a page: verdicts, rows that differ from the reference row or the best rows
    of the columns, and the share of numbers with a mark of failed checks.
    """
    cells = [cell for cell in list_cells(tables) if cell.values]
    verdicts = Counter(cell.verdict.word for cell in cells if cell.number is not None)
    counts = ", ".join(f"{word} ({n})" for word, n in verdicts.most_common())
    sentences = [f"Verdicts on printed numbers: {counts}."] if counts else []
    if order := _describe_order(cells, reference):
        sentences.append(order)
    if not sentences:
        sentences.append(f"The page has {format_count(len(cells), 'score')} and compares no rows.")
    marks = Counter(mark for cell in cells if (mark := mark_failures(cell.failed)))
    shares = (
        f"{n / len(cells):.0%} of the numbers are marked {mark}." for mark, n in marks.items()
    )
    return " ".join([*sentences, *shares])


def _describe_order(cells: Sequence[Cell], reference: str | None) -> str:
    """Significant comparisons with the reference row, or the best rows; empty if there are none."""
    p = [cell.against.p_holm for cell in cells if cell.against is not None]
    tested = [value for value in p if not math.isnan(value)]
    if tested:
        differing = sum(value <= LEVEL for value in tested)
        return f'{differing} of {len(tested)} differences from "{reference}" are significant.'
    bold = dict.fromkeys(cell.row.name for cell in cells if cell.bold)
    names = "; ".join(bold) if len(bold) <= MOST_NAMES else format_count(len(bold), "row")
    return (
        f"Best in a column, or not significantly different from the best: {names}." if bold else ""
    )


def describe_published(laid: TableLayout) -> str:
    """Source and location of the published numbers, and the meaning of their parentheses."""
    published = laid.published
    if published is None:
        return ""
    meaning = f" ({published.parentheses} in parentheses)" if published.parentheses else ""
    return f"{published.source}, {published.where}{meaning}"


def worse_side(laid: TableLayout) -> str:
    """Sentence about the sign of a difference that means a worse row, by column if columns differ."""
    signs = {"lower": "positive", "higher": "negative", None: ""}
    side = {column: signs[laid.spec.column_direction(column)] for column in laid.columns}
    kinds = dict.fromkeys(side.values())
    if len(kinds) == 1:
        sign = next(iter(kinds))
        return f"{sign.capitalize()} differences are worse" if sign else "Neither sign is better"
    parts = [
        f"{sign or 'none'} in {join_words([c for c in side if side[c] == sign])}" for sign in kinds
    ]
    return f"Worse differences: {'; '.join(parts)}"


def join_some(names: Iterable[str], sign: str, shown: int) -> str:
    """Join the first names, with the number of others."""
    listed = list(names)
    more = [f"{len(listed) - shown} more"] if len(listed) > shown else []
    return sign.join([*listed[:shown], *more])


def join_words(words: Sequence[str]) -> str:
    """Join distinct words as ``a, b and c``."""
    once = list(dict.fromkeys(words))
    return " and ".join([", ".join(once[:-1]), once[-1]] if len(once) > 1 else once)
