"""Evolutions: every recorded estimate is in the figure, by method and replicate, beside the exact value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from components.figures.samples.evolution import evolution


def table() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"method": m, "replicate": r, "step": t, "metric": metric, "value": i + 10 * r + 1 / t}
            for metric in ("mean", "second_moment")
            for i, m in enumerate(("SGLD", "SGLD+R"))
            for r in range(2)
            for t in (10, 20, 30)
        ]
    )


def test_a_line_for_each_replicate_and_one_for_the_exact_value():
    figure = evolution(table(), {"mean": 1.5})
    left, right = figure.axes
    assert [len(ax.lines) for ax in (left, right)] == [5, 4]
    np.testing.assert_allclose(left.lines[1].get_xydata(), [[t, 10 + 1 / t] for t in (10, 20, 30)])
    assert list(left.lines[4].get_ydata()) == [1.5, 1.5]
    assert left.lines[0].get_color() == left.lines[1].get_color() != left.lines[2].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SGLD", "SGLD+R", "exact"]


def test_more_methods_than_colours_are_told_apart():
    many = pd.concat([table().query("metric == 'mean'").assign(method=f"m{i}") for i in range(20)])
    figure = evolution(many, {}, "seconds of training")
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 20
    assert figure.axes[0].get_xlabel() == "seconds of training"


def test_a_lacking_column_is_named():
    with pytest.raises(ValueError, match="lacks value"):
        evolution(table().drop(columns="value"), {})
