"""User text in a figure: invalid mathematics becomes plain text."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text


def readable(figure: Figure) -> Figure:
    """Make all text of a figure drawable, including invalid text between dollar signs."""
    parser = MathTextParser("agg")
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if "$" in text.get_text():
            try:
                parser.parse(text.get_text())
            except ValueError:
                text.set_parse_math(False)
    return figure
