"""Legends are outside the panels and list the plotted artists."""

import pytest

from components.figures.style import (
    drawn_entries,
    label_below,
    legend_above,
    legend_below,
    new_figure,
)


def overlaps(axis, legend):
    figure = axis.figure
    figure.draw_without_rendering()
    return axis.get_window_extent().overlaps(legend.get_window_extent().padded(-1))


def test_legend_lists_each_artist_once():
    figure, axes = new_figure(1, 2)
    for axis in axes:
        axis.plot([0, 1], [0, 1], label="line")
        axis.plot([], [], "o", label="no points")
        axis.scatter([], [], label="no dots")
        axis.scatter([1], [1], label="dots")
    assert list(drawn_entries(axes)) == ["line", "dots"]
    legend_below(figure, axes)
    assert [text.get_text() for text in figure.legends[0].texts] == ["line", "dots"]
    assert not any(overlaps(axis, figure.legends[0]) for axis in axes)


@pytest.mark.parametrize("n", [1, 3, 9])
def test_legend_covers_neither_panel_nor_title(n):
    figure, (axis,) = new_figure()
    for k in range(n):
        axis.plot([0, 1], [k, 1], label=f"a name of line {k}")
    axis.set_title("title")
    legend_above(axis)
    legend = axis.get_legend()
    assert len(legend.texts) == n
    assert not overlaps(axis, legend)
    box = legend.get_window_extent()
    assert not axis.title.get_window_extent().overlaps(box.padded(-1))
    assert box.width < figure.bbox.width


def test_legend_requires_labels():
    figure, (axis,) = new_figure()
    axis.plot([0, 1])
    legend_above(axis)
    legend_below(figure, [axis])
    assert axis.get_legend() is None
    assert not figure.legends


def test_axis_names_are_below_lowest_panels():
    _, axes = new_figure(3, 3)
    label_below(axes[:7], 3, "lag")  # the third row has one panel
    assert [k for k, axis in enumerate(axes) if axis.get_xlabel() == "lag"] == [4, 5, 6]
