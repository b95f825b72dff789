"""Evolutions: every recorded estimate is in the figure, by method and replicate, with the exact
value."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from components.figures.samples.evolution import evolution
from components.figures.style import PALETTE


def table():
    return pd.DataFrame(
        [
            {"method": m, "replicate": r, "step": t, "metric": metric, "value": i + 10 * r + 1 / t}
            for metric in ("mean", "second_moment")
            for i, m in enumerate(("SGLD", "SGLD+R"))
            for r in range(2)
            for t in (10, 20, 30)
        ]
    )


def test_evolution_has_line_per_replicate_and_exact_value():
    figure = evolution(table(), {"mean": 1.5})
    left_axes, right_axes = figure.axes
    assert [len(ax.lines) for ax in (left_axes, right_axes)] == [5, 4]
    assert_allclose(left_axes.lines[1].get_xydata(), [[t, 10 + 1 / t] for t in (10, 20, 30)])
    assert list(left_axes.lines[4].get_ydata()) == [1.5, 1.5]
    assert (
        left_axes.lines[0].get_color()
        == left_axes.lines[1].get_color()
        != left_axes.lines[2].get_color()
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "SGLD",
        "SGLD+R",
        "exact",
    ]


def test_many_methods_get_a_panel_each():
    names = [f"Reinforce with control variates, {i}" for i in range(20)]
    mean = table().query("metric == 'mean'")
    many = pd.concat([mean.assign(method=name) for name in names])
    figure = evolution(many, {"mean": 1.5}, "seconds of training")
    assert [" ".join(ax.get_title().split()) for ax in figure.axes] == names
    replicates = table()["replicate"].nunique()
    for ax in figure.axes:
        colours = [line.get_color() for line in ax.lines]
        assert colours.count(PALETTE[0]) == replicates
        # the others' means, its own replicates, the exact value
        assert len(colours) == 19 + replicates + 1
    assert figure.get_supxlabel() == "seconds of training"


def test_band_covers_central_replicates():
    steps = (10, 20)
    values = np.linspace(-3, 7, 101)
    many = pd.DataFrame(
        [
            {"method": m, "replicate": r, "step": t, "metric": "reward", "value": v * t + i}
            for i, m in enumerate(("Q", "FPQ"))
            for r, v in enumerate(values)
            for t in (*steps, steps[-1])  # the last evaluation is repeated
        ]
    )
    figure = evolution(
        many, {"reward": 2.0}, "episode", band=True, words={"reward": "mean reward"}, known="value"
    )
    (ax,) = figure.axes
    assert_allclose(
        [line.get_xydata() for line in ax.lines[:2]],
        [[[t, 2 * t + i] for t in steps] for i in range(2)],
    )
    corners = {(x, round(y, 9)) for x, y in ax.collections[0].get_paths()[0].vertices}
    assert corners == {(t, round(v * t, 9)) for t in steps for v in (-2.5, 6.5)}
    assert list(ax.lines[2].get_ydata()) == [2.0, 2.0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("episode", "mean reward")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Q", "FPQ", "value"]
