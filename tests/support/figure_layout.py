"""Faults of the layout of a figure."""

from __future__ import annotations

from itertools import combinations
from unittest.mock import patch

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SMALLEST = 7  # points


def layout_faults(figure: Figure) -> list[str]:
    """Texts that the canvas cuts off or that are too small, and tick labels or titles that overlap."""
    boxes: dict[Text, Bbox] = {}

    def record(text: Text, _: object) -> None:
        if text.get_visible() and text.get_text().strip():
            boxes[text] = text.get_window_extent()

    figure.draw_without_rendering()  # the layout at this resolution, not at that of a saved file
    with patch.object(Text, "draw", record):
        FigureCanvasAgg(figure).draw()
    canvas = figure.bbox.padded(1.0)
    faults = [
        f"cut off: {text.get_text()}"
        for text, box in boxes.items()
        if (Bbox.union([canvas, box]).extents != canvas.extents).any()
    ]
    faults += [f"small: {text.get_text()}" for text in boxes if text.get_fontsize() < SMALLEST]
    groups = [
        [*axis.get_majorticklabels(), *axis.get_minorticklabels()]
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
    ]
    for labels in (*groups, [axes.title for axes in figure.axes]):
        # the box of a turned text is larger than the text
        upright = [label for label in labels if label in boxes and label.get_rotation() % 90 == 0]
        faults += [
            f"overlap: {left.get_text()} and {right.get_text()}"
            for left, right in combinations(upright, 2)
            if boxes[left].padded(-1.0).overlaps(boxes[right].padded(-1.0))
        ]
    return faults
