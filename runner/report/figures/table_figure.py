"""A laid-out table as a picture, for slides and for pages that show no HTML."""

from __future__ import annotations

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
    y = 0.35
    ax.text(0, y, laid.spec.title, fontsize=11, weight="bold", color=INK, va="center")
    y += LINE_HEIGHT_INCHES
    for j, heading in enumerate(laid.columns):
        ax.text(
            LABEL_WIDTH_INCHES + column * (j + 0.5),
            y,
            heading,
            ha="center",
            va="center",
            fontsize=9,
            color=INK,
        )
    ax.plot([0, width], [y + LINE_HEIGHT_INCHES / 2] * 2, color=INK, linewidth=0.8)
    previous = None
    for row, cells in laid.rows:
        y += LINE_HEIGHT_INCHES
        if previous is not None and row.published_label != previous:
            ax.plot([0, width], [y - LINE_HEIGHT_INCHES / 2] * 2, color=RULE, linewidth=0.6)
        previous = row.published_label
        ax.text(0, y, row.label, fontsize=9, color=INK, va="center")
        ax.text(
            LABEL_WIDTH_INCHES - 0.1,
            y,
            row.preset,
            fontsize=7.5,
            color=GREY,
            va="center",
            ha="right",
        )
        for j, cell in enumerate(cells):
            x = LABEL_WIDTH_INCHES + column * (j + 0.5)
            text = cell.format(laid.spec)
            text += OTHER_PROTOCOL_MARK if text and cell.other_protocol else ""
            if not text:
                ax.text(x, y - 0.06, "not run", ha="center", va="center", fontsize=8, color=RULE)
            else:
                weight = "bold" if cell.bold else "normal"
                ax.text(
                    x,
                    y - 0.06,
                    text,
                    ha="center",
                    va="center",
                    fontsize=9,
                    color=INK,
                    weight=weight,
                )
            if cell.number is not None:
                colour = COLOURS.get(cell.verdict.kind, GREY)
                ax.text(
                    x,
                    y + 0.11,
                    cell.number.text,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=colour,
                )
    y += LINE_HEIGHT_INCHES
    ax.plot([0, width], [y - LINE_HEIGHT_INCHES / 2] * 2, color=INK, linewidth=0.8)
    printed = (
        f"below, small: {laid.published.source}, {laid.published.where}" if laid.published else ""
    )
    data = f"data: {', '.join(laid.data)}" if laid.data else "nothing run yet"
    ax.text(
        0,
        y - 0.04,
        f"ours: {CENTRES[laid.spec.centre]}, {data}",
        fontsize=7,
        color=GREY,
        va="center",
    )
    colours = "green agrees, blue better, red worse, grey not comparable"
    ax.text(
        0, y + 0.14, f"{printed}; {colours}" if printed else "", fontsize=7, color=GREY, va="center"
    )
    return figure
