r"""Tables of a report in LaTeX, from the templates ``*.tex.j2``.

They require ``array``, ``booktabs``, ``graphicx``, ``longtable`` and ``siunitx``: mean \pm SE in ``S``
columns, the best in bold as in the other forms of the report, published numbers in a row below ours,
with the number of decimals set by the study.  Long labels and headings wrap; a table that is still
wider than the line is scaled down, and a table with few columns may continue on the next page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runner.report.latex.text import label_column, latex, wrap_heading
from runner.report.scores.cells import TableLayout
from runner.report.wording import (
    CORRECTION,
    describe_bold,
    describe_test,
    format_range,
    worse_side,
)
from runner.terminal.templates import environment


def _render(template: str, laid: TableLayout, **values: object) -> str:
    templates = environment(
        Path(__file__).parent,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    templates.filters["latex"] = latex
    templates.tests["finite"] = math.isfinite
    return templates.get_template(f"{template}.tex.j2").render(laid=laid, **values)


def score_table(laid: TableLayout, name: str, smoke: bool = False) -> str:
    """A ``table`` with a row for each row of the study with runs.

    A published row comes below all rows compared with it.
    """
    ran = [
        (row, cells) for row, cells in laid.rows if any(cell.values for cell in cells)
    ] or laid.rows
    heads = [[row.label for row, _ in ran]]
    if presets := any(row.preset for row, _ in ran):
        heads.append([row.preset for row, _ in ran])
    columns = [label_column(labels) for labels in heads]
    for cells in zip(*(cells for _, cells in ran), strict=True):
        ours = [estimate for cell in cells if (estimate := cell.centre(laid.spec))]
        printed = [(cell.number.mean, cell.number.se) for cell in cells if cell.number]
        column = _number_format([*ours, *printed], laid.spec.digits)
        columns.append(f"S[{column}, separate-uncertainty, retain-zero-uncertainty]")
    return _render(
        "scores",
        laid,
        label=f"{name}_{laid.spec.name}",
        smoke=smoke,
        rows=ran,
        presets=presets,
        columns=columns,
        headings=["{}"] * len(heads) + [wrap_heading(column) for column in laid.columns],
        replicates=format_range(laid.replicates, "replicate"),
        bold=describe_bold(laid.splits_overlap),
    )


def _number_format(estimates: Sequence[tuple[float, float | None]], digits: int) -> str:
    """Format of an ``S`` column for its largest number and spread."""
    columns = np.array(estimates, dtype=float).reshape(-1, 2).T
    centres, spreads = (column[np.isfinite(column)] for column in columns)
    sign = "-" if (centres < 0).any() else ""
    text = f"{sign}{len(f'{np.abs(centres).max(initial=0):.0f}')}.{digits}"
    if spreads.size:  # in units of the last digit
        text += f"({len(str(round(spreads.max() * 10**digits)))})"
    return f"table-format={text}"


def paired_table(laid: TableLayout, name: str, reference: str, smoke: bool) -> str:
    """A ``table`` with a line for each row and column compared with the reference row: difference,
    its SE, number of pairs, p, and p after Holm's correction; empty without comparisons."""
    compared = [cell for cell in laid.cells if cell.against is not None and cell.against.n > 1]
    if not compared:
        return ""
    labels = {"row": [cell.row.name for cell in compared]}
    if len(laid.columns) > 1:
        labels[laid.column_name] = laid.columns
    pairs = [cell.against for cell in compared if cell.against]
    digits = laid.spec.digits + 1
    numbers = ([pair.difference for pair in pairs], [pair.se for pair in pairs])
    formats = [_number_format([(v or 0.0, None) for v in values], digits) for values in numbers]
    return _render(
        "paired",
        laid,
        label=f"{name}_{laid.spec.name}_paired",
        smoke=smoke,
        cells=compared,
        digits=digits,
        reference=reference,
        columns=[*map(label_column, labels.values()), *(f"S[{f}]" for f in formats), "r", "l", "l"],
        headings=[*map(latex, labels), "{difference}", "{SE}", "$n$", "$p$", r"$p_\mathrm{Holm}$"],
        test=describe_test(laid.splits_overlap),
        correction=CORRECTION,
        worse_side=worse_side(laid),
    )
