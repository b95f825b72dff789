"""A laid-out table as a picture, for slides and for pages that show no HTML."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from components.figures.style import new_figure
from runner.report.scores.cells import OTHER_PROTOCOL_MARK, TableLayout
from runner.study.table_specs import CENTRES

INK, GREY, RULE = "#1a1a1a", "#8a8a8a", "#c8c8c8"
LABEL_WIDTH_INCHES = 2.2
COLUMN_WIDTH_INCHES = 1.15
LINE_HEIGHT_INCHES = 0.42  # inches: width of the labels, of a column; height of a line
COLOURS = {"agrees": "#1b7837", "better": "#2166ac", "worse": "#b2182b"}  # by kind of verdict


def table_figure(laid: TableLayout) -> Figure:
    """Ours, mean(SE) or median(IQR), the best in bold; below each, small, what is printed, coloured
    by the verdict."""
    n_rows = len(laid.rows)
    n_columns = len(laid.columns)
    # long headings need room
    column = max(COLUMN_WIDTH_INCHES, 0.1 + 0.075 * max((len(c) for c in laid.columns), default=0))
    width = LABEL_WIDTH_INCHES + column * n_columns
    height = LINE_HEIGHT_INCHES * (n_rows + 2.6)
    figure, (ax,) = new_figure(1, 1, width=width, height=height)
    figure.set_layout_engine("none")  # everything is placed in inches
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    middles = [LABEL_WIDTH_INCHES + column * (j + 0.5) for j in range(n_columns)]

    def put(x: float, y: float, text: str, fontsize: float, **style: Any) -> None:
        ax.text(x, y, text, fontsize=fontsize, va="center", **{"color": INK} | style)

    def rule(y: float, colour: str, width_points: float) -> None:
        edge = y - LINE_HEIGHT_INCHES / 2
        ax.plot([0, width], [edge, edge], color=colour, linewidth=width_points)

    y = 0.35
    put(0, y, laid.spec.title, 11, weight="bold")
    y += LINE_HEIGHT_INCHES
    for x, heading in zip(middles, laid.columns, strict=True):
        put(x, y, heading, 9, ha="center")
    rule(y + LINE_HEIGHT_INCHES, INK, 0.8)
    previous = None
    for row, cells in laid.rows:
        y += LINE_HEIGHT_INCHES
        if previous is not None and row.published_label != previous:
            rule(y, RULE, 0.6)
        previous = row.published_label
        put(0, y, row.label, 9)
        put(LABEL_WIDTH_INCHES - 0.1, y, row.preset, 7.5, color=GREY, ha="right")
        for x, cell in zip(middles, cells, strict=True):
            if text := cell.format(laid.spec):
                text += OTHER_PROTOCOL_MARK if cell.other_protocol else ""
                put(x, y - 0.06, text, 9, ha="center", weight="bold" if cell.bold else "normal")
            else:
                put(x, y - 0.06, "not run", 8, ha="center", color=RULE)
            if cell.number is not None:
                colour = COLOURS.get(cell.verdict.kind, GREY)
                put(x, y + 0.11, cell.number.text, 7, ha="center", color=colour)
    y += LINE_HEIGHT_INCHES
    rule(y, INK, 0.8)
    published = laid.published
    printed = f"below, small: {published.source}, {published.where}" if published else ""
    data = f"data: {', '.join(laid.data)}" if laid.data else "nothing run yet"
    put(0, y - 0.04, f"ours: {CENTRES[laid.spec.centre]}, {data}", 7, color=GREY)
    colours = "green agrees, blue better, red worse, grey not comparable"
    put(0, y + 0.14, f"{printed}; {colours}" if printed else "", 7, color=GREY)
    return figure
