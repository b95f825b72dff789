"""Text from outside in a figure: unreadable mathematics is shown as written."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text


def readable(figure: Figure) -> Figure:
    """The figure, in which no text between dollar signs can keep it from being drawn."""
    parser = MathTextParser("agg")
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if "$" in text.get_text():
            try:
                parser.parse(text.get_text())
            except ValueError:
                text.set_parse_math(False)
    return figure
