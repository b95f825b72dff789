"""Faults of layouts are found; ``tests/conftest.py`` looks for them in every figure that a test
draws."""

import pytest
from matplotlib.figure import Figure
from support.figure_layout import layout_faults


def wide_legend(figure, axes):
    axes.plot([0, 1], label="a name that is longer than the figure is wide")
    figure.legend(loc="lower center")


def titles_at_one_place(_, axes):
    axes.set_title("left")
    axes.twiny().set(title="right", xticks=[])


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (wide_legend, "cut off: a name that is longer than the figure is wide"),
        (lambda _, axes: axes.set_title("title", fontsize=6), "small: title"),
        (lambda _, axes: axes.set_xticks([0, 1e-3], ["left", "right"]), "overlap: left and right"),
        (titles_at_one_place, "overlap: left and right"),
    ],
)
def test_planted_fault_is_found(plant, fault):
    figure = Figure(figsize=(3, 3))
    axes = figure.add_subplot(xlim=(0, 1))
    assert layout_faults(figure) == []
    plant(figure, axes)
    assert layout_faults(figure) == [fault]
