r"""Tables of a report in LaTeX.

They need ``array``, ``booktabs``, ``graphicx``, ``longtable`` and ``siunitx``: mean \pm SE in ``S`` columns, the
best in bold as in the other forms of the report, published numbers in a row below the
numbers that they are compared with, each in the number of decimals that the study
names.  Long labels and headings wrap; a table that is still wider than the line is made
smaller, and one of few columns that is longer than a page goes on over several pages.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from runner.report.latex.text import floating_table, label_column, latex, wrap_heading
from runner.report.scores.cells import Cell, TableLayout
from runner.report.wording import (
    CORRECTION,
    describe_bold,
    describe_test,
    format_range,
    worse_side,
)
from runner.study.table_specs import Row

CAPTIONS = {"mean": "Mean and standard error", "median": "Median and interquartile range"}
OVERLAP = "Standard errors are corrected for overlapping splits (Nadeau and Bengio, 2003)"
SMALLEST_P = 1e-4  # smaller ones are printed as an upper bound


def score_table(laid: TableLayout, name: str, smoke: bool = False) -> str:
    """A ``table`` with a row for each of the study's rows that was run.

    If the papers print a row, it is below all rows that are compared with it.
    """
    ran = [
        (row, cells) for row, cells in laid.rows if any(cell.centre(laid.spec) for cell in cells)
    ] or laid.rows
    width = int(any(row.preset for row, _ in ran))
    heads = [row.label for row, _ in ran], [row.preset for row, _ in ran]
    columns = [*(label_column(labels) for labels in heads[: 1 + width])]
    columns += [
        _number_column([cells[i] for _, cells in ran], laid) for i in range(len(laid.columns))
    ]
    headings = ["{}"] * (1 + width) + [wrap_heading(column) for column in laid.columns]
    body: list[str] = []
    groups = itertools.groupby(ran, key=lambda line: line[0].published_label)
    for i, (_, group) in enumerate(groups):
        body += [r"\addlinespace"] if i else []
        body += _group_lines(list(group), laid, width)
    label = f"{name}_{laid.spec.name}"
    return floating_table(label, _score_caption(laid, smoke), columns, headings, body)


def _score_caption(laid: TableLayout, smoke: bool) -> str:
    """Title, statistic, number of replicates, meaning of bold, and source of published rows."""
    counts = format_range(laid.replicates, "replicate")
    sentences = [CAPTIONS[laid.spec.centre] + (f" of n = {counts}" if counts else "")]
    if laid.splits_overlap and laid.spec.centre == "mean":
        sentences.append(OVERLAP)
    if any(cell.bold for cell in laid.cells):
        sentences.append(f"Bold: {describe_bold(laid.splits_overlap)}")
    if any(cell.other_protocol for cell in laid.cells):
        sentences.append(r"\textsuperscript{\S}: of another protocol, compared with nothing")
    if any(cell.number for cell in laid.cells):
        sentences.append(_describe_published(laid))
    return _caption(laid, sentences, smoke)


def _describe_published(laid: TableLayout) -> str:
    published = laid.published
    if published is None:
        return ""
    has_spread = any(
        number.se is not None for row in published.values.values() for number in row.values()
    )
    form = ", as mean and standard error" if has_spread else ""
    return f"Published: {published.source}, {published.where}{form}"


def _caption(laid: TableLayout, sentences: list[str], smoke: bool) -> str:
    mark = r"\textbf{Smoke run, no result.} " if smoke else ""
    return mark + " ".join(f"{latex(sentence)}." for sentence in [laid.spec.title, *sentences])


def _number_column(cells: list[Cell], laid: TableLayout) -> str:
    """An ``S`` column as wide as its largest number and spread."""
    digits = laid.spec.digits
    estimates = [estimate for cell in cells if (estimate := cell.centre(laid.spec))]
    estimates += [(cell.number.mean, cell.number.se) for cell in cells if cell.number]
    means = [mean for mean, _ in estimates if math.isfinite(mean)]
    spreads = [spread for _, spread in estimates if spread is not None and math.isfinite(spread)]
    sign = "-" if any(mean < 0 for mean in means) else ""
    whole = max((len(f"{abs(mean):.0f}") for mean in means), default=1)
    form = f"{sign}{whole}.{digits}"
    if spreads:  # in units of the last digit
        form += f"({max(len(str(round(spread * 10**digits))) for spread in spreads)})"
    return f"S[table-format={form}, separate-uncertainty, retain-zero-uncertainty]"


def _group_lines(
    rows: list[tuple[Row, list[Cell]]], laid: TableLayout, width: int
) -> Iterator[str]:
    """Rows that are compared with the same published row, and below them that row.

    ``width``: columns between the label and the scores.
    """
    for row, cells in rows:
        head = [latex(row.label), latex(row.preset)][: 1 + width]
        yield " & ".join([*head, *(_format_score(cell, laid) for cell in cells)]) + r" \\"
    if any(cell.number is not None for cell in cells):
        theirs = [_format_published(cell, laid.spec.digits) for cell in cells]
        yield " & ".join([r"\quad published", *[""] * width, *theirs]) + r" \\"


def _format_score(cell: Cell, laid: TableLayout) -> str:
    """``mean \\pm SE`` for an S column, bold where the report has it so; ``{--}`` where nothing was
    run."""
    estimate = cell.centre(laid.spec)
    if estimate is None or not math.isfinite(estimate[0]):
        return "{--}"
    text = _format_number(*estimate, laid.spec.digits)
    text = f"\\bfseries {text}" if cell.bold else text
    return f"{text} {{\\textsuperscript{{\\S}}}}" if cell.other_protocol else text


def _format_published(cell: Cell, digits: int) -> str:
    number = cell.number
    return "{--}" if number is None else _format_number(number.mean, number.se, digits)


def _format_number(centre: float, spread: float | None, digits: int) -> str:
    """A number of an S column, with its spread if there is one."""
    return f"{centre:.{digits}f}" + ("" if spread is None else f" \\pm {spread:.{digits}f}")


def paired_table(laid: TableLayout, name: str, reference: str, smoke: bool = False) -> str:
    """A ``table`` with a line for each row and column compared with the reference row: difference,
    its SE, number of pairs, p, and p after Holm's correction; empty: nothing is compared."""
    compared = [cell for cell in laid.cells if cell.against is not None and cell.against.n > 1]
    if not compared:
        return ""
    several = len(laid.columns) > 1
    columns = [label_column([cell.row.name for cell in compared])]
    columns += [label_column(laid.columns)] if several else []
    key = laid.spec.columns
    names = ["row", key.split(".")[-1] if isinstance(key, str) else "column"]
    headings = [latex(name) for name in names[: 1 + several]]
    differences = [cell.against.difference for cell in compared if cell.against]
    whole = max(len(f"{abs(difference):.0f}") for difference in differences)
    digits = laid.spec.digits + 1
    columns += [f"S[table-format=-{whole}.{digits}]", f"S[table-format={whole}.{digits}]"]
    columns += ["r", "l", "l"]
    headings += ["{difference}", "{SE}", "$n$", "$p$", r"$p_\mathrm{Holm}$"]
    body: list[str] = []
    previous = None
    for cell in compared:
        row = cell.row
        body += [r"\addlinespace"] if several and previous not in (None, row) else []
        head = [latex(row.name) if row != previous else ""]
        head += [latex(cell.column)] if several else []
        body.append(" & ".join([*head, *_format_pair(cell, digits)]) + r" \\")
        previous = row
    sentences = [
        f"Mean difference from {reference} over n pairs of replicates and its standard error",
        f"p: {describe_test(laid.splits_overlap)}; Holm: after {CORRECTION}",
        worse_side(laid),
    ]
    caption = _caption(laid, sentences, smoke)
    return floating_table(f"{name}_{laid.spec.name}_paired", caption, columns, headings, body)


def _format_pair(cell: Cell, digits: int) -> list[str]:
    """Difference, SE, number of pairs, p and corrected p."""
    pair = cell.against
    if pair is None:
        return ["{--}", "{--}", "--", "--", "--"]
    se = "{--}" if pair.se is None else f"{pair.se:.{digits}f}"
    p = [_format_p(pair.p), _format_p(pair.p_holm)]
    return [f"{pair.difference:.{digits}f}", se, str(pair.n), *p]


def _format_p(p: float) -> str:
    if math.isnan(p):
        return "--"
    return f"${p:.2g}$" if p >= SMALLEST_P else "$<10^{-4}$"
