"""Filters of fields: summaries of all cells that a key matches."""

from __future__ import annotations

import math
from dataclasses import replace

from scripts.pages import format_table
from scripts.prose.cells import Scores, estimate_centre, read_direction
from scripts.prose.estimate import Estimate
from scripts.prose.scores import ProseError


def show(scores: Scores, decimals: int | None = None, percent: bool = False) -> Scores:
    """The scores in decimals and as percentages."""
    estimates = [each.to_percent() if percent else each for each in scores.estimates]
    return replace(scores, estimates=[replace(each, decimals=decimals) for each in estimates])


def pick_best(scores: Scores) -> Estimate:
    """The best of the centres."""
    pick = min if read_direction(scores.cells[0]) == "lower" else max
    return estimate_centre(pick(scores.cells, key=lambda each: estimate_centre(each).value))


def count_agreeing(scores: Scores) -> str:
    """Number of verdicts that agree, among comparable ones: ``98 of 104``."""
    words = [each.cell.verdict.word for each in scores.cells]
    judged = [word for word in words if not word.startswith("not ")]
    return f"{sum(word.startswith('agrees') for word in judged)} of {len(judged)}"


def format_range(scores: Scores) -> str:
    """``0.88 to 0.92 (SE ≤ 0.01)``."""
    estimates = sorted(scores.estimates, key=lambda each: each.value)
    low = estimates[0]
    high = estimates[-1]
    n = min(low.places, high.places)
    failure = max(each.failure for each in estimates)  # † before ¶
    few = any(each.few for each in estimates)
    ends = dict.fromkeys(replace(each, signed=False).format_value(n) for each in (low, high))
    text = f"{' to '.join(ends)}{high.unit}{replace(high, failure=failure, few=few).marks}"
    most = max((each.se or 0.0 for each in estimates if each.has_se), default=0.0)
    bound = math.ceil(most * 10**n) / 10**n
    return f"{text} (SE ≤ {bound:,.{n}f})" if most else text


def join_scores(first: Scores, second: Scores) -> Scores:
    """Scores of both in one table; columns of the second get its name if the first has columns of
    the same name."""
    cells = second.cells
    if {each.cell.column for each in first.cells} & {each.cell.column for each in cells}:
        cells = [each.rename_column(f"{each.spec.name}, {each.cell.column}") for each in cells]
    return Scores(first.cells + cells, first.estimates + second.estimates)


def sort_columns(columns: list[str]) -> list[str]:
    """Columns by size where all are numbers, or else in the study's order."""
    try:
        return sorted(columns, key=float)
    except ValueError:
        return columns


def tabulate(scores: Scores) -> str:
    """Rows by columns; an empty cell has no kept score."""
    texts: dict[str, dict[str, str]] = {}
    for scored, estimate in zip(scores.cells, scores.estimates, strict=True):
        text = str(estimate)
        if scored.cell.number is not None and not estimate.signed:
            text += f"<br><sub>{scored.cell.number.text}</sub>"
        row = texts.setdefault(scored.cell.row.name, {})
        if scored.cell.column in row:
            raise ProseError(f"{scored}: several cells in one place of a table")
        row[scored.cell.column] = text
    columns = sort_columns(list(dict.fromkeys(each.cell.column for each in scores.cells)))
    rows = [[name, *(row.get(column, "") for column in columns)] for name, row in texts.items()]
    return format_table(["row", *columns], rows, "---:")


FILTERS = {
    "show": show,
    "best": pick_best,
    "agree": count_agreeing,
    "range": format_range,
    "join": join_scores,
    "table": tabulate,
}
