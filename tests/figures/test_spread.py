"""Violins and boxes: one for every method in every group, with correct positions of quartiles and
lines."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from components.series.figures.spread import spread


def table(groups=("",), methods=("BPF", "β = 0.1")):
    g = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"method": m, "group": group, "metric": metric, "value": value}
            for metric, low, high in (("nmse", -5.0, -1.0), ("coverage90", -0.5, -0.1))
            for m in methods
            for group in groups
            for value in 10 ** g.uniform(low, high, 30)
        ]
    )


def test_box_shows_quartiles_median_level_and_mark():
    draws = table()
    top, bottom = spread(draws, "violin", {"coverage90": 0.9}, {("β = 0.1", "")}).axes
    assert (top.get_yscale(), bottom.get_yscale()) == ("log", "linear")
    values = draws[(draws["metric"] == "nmse") & (draws["method"] == "β = 0.1")]["value"]
    lines = [np.asarray(c.get_segments()[0]) for c in top.collections if hasattr(c, "get_segments")]
    assert_allclose(lines[1], [[1, values.quantile(0.25)], [1, values.quantile(0.75)]])
    assert_allclose(top.lines[1].get_xydata(), [[1, values.median()]])
    assert list(top.lines[2].get_xdata()) == [1, 1]  # the marker
    assert list(bottom.lines[-1].get_ydata()) == [0.9, 0.9]
    assert [t.get_text() for t in bottom.get_xticklabels()] == ["BPF", "β = 0.1"]


def test_violin_width_is_density_on_its_axis():
    shape = spread(table(), "violin", {}).axes[0].collections[0].get_paths()[0].vertices
    y = shape[:, 1]
    x = shape[:, 0]
    assert y.min() < 2e-5
    assert y.max() > 5e-2
    assert x.max() == pytest.approx(0.42)
    assert (
        x[(y > 1e-4) & (y < 1e-3) & (x > 0)] > 0.2
    ).all()  # uniform in the logarithm: also wide at small values


@pytest.mark.parametrize("kind", ["violin", "box"])
def test_groups_are_separate_and_exclude_missing_scores(kind):
    draws = table(groups=("0.1", "0.2"), methods=tuple("abcdefghij"))
    draws.loc[0, "value"] = np.inf
    figure = spread(draws, kind, {"coverage90": 0.9}, label="$p_c$")
    assert [t.get_text() for t in figure.axes[1].get_xticklabels()] == ["0.1", "0.2"]
    assert figure.axes[1].get_xlabel() == "$p_c$"
    patches = figure.legends[0].get_patches()
    assert len({(p.get_facecolor(), p.get_hatch()) for p in patches}) == 10


def test_equal_scores_are_drawn():
    alike = table().assign(value=0.5)
    assert len(spread(alike, "violin", {}).axes[0].lines) == 2
