"""Learning curves: every number of the table is drawn, and numbers too large for the panel are
written."""

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer
from support.figure_layout import layout_faults

from components.figures.style import PALETTE
from components.figures.supervised.learning_curve import learning_curve
from runner.report.latex.paper import fit_to_column

SIZES = [100, 1000, 10_000]


def table(models=("a", "b"), metrics=("nlpp", "rmse"), sizes=SIZES):
    return pd.DataFrame(
        [
            {
                "model": m,
                "n_train": n,
                "mean": 1 / (1 + i + j),
                "se": 0.01 * (i + 1),
                "metric": metric,
            }
            for metric in metrics
            for i, m in enumerate(models)
            for j, n in enumerate(sizes)
        ]
    )


def bars(ax):
    return [c for c in ax.containers if isinstance(c, ErrorbarContainer)]


def test_curve_has_panel_per_metric_and_line_per_model():
    figure = learning_curve(table().sample(frac=1, random_state=0))
    assert [ax.get_ylabel() for ax in figure.axes].count("NLPP") == 1
    assert [ax.get_ylabel() for ax in figure.axes].count("RMSE") == 1
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(names) == ["a", "b"]
    figure.draw_without_rendering()
    assert min(ax.get_position().width for ax in figure.axes) > 0.3
    for ax in figure.axes:
        assert ax.get_xscale() == "log"
        for name, bar in zip(names, bars(ax), strict=True):
            i = "ab".index(name)
            x, y = bar.lines[0].get_data()
            assert np.allclose(np.asarray(x) / SIZES, 1, atol=0.05), "at most a small step sideways"
            assert np.allclose(y, [1 / (1 + i + j) for j in range(3)])
            lengths = [np.ptp(segment[:, 1]) for segment in bar.lines[2][0].get_segments()]
            assert lengths == pytest.approx([2 * 0.01 * (i + 1)] * 3)


@pytest.mark.parametrize("name", ["a", "a defence, trained against such attacks"])
def test_long_label_keeps_panel_width(name):
    figure = learning_curve(table((name, "b"), ("rmse",)))
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().width > 0.6


def test_labels_of_all_sizes_fit_four_panels_of_a_page():
    rates = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
    figure = learning_curve(table(metrics="pqrs", sizes=rates))
    fit_to_column(figure)
    assert layout_faults(figure) == []
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["0.05", "0.1", "", "0.2", "", "", "0.35", ""]


def test_many_models_get_a_panel_each():
    models = [f"m{i}" for i in range(10)]
    figure = learning_curve(table(models, ("rmse", "nlpp")))
    shown = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in shown] == [*models, *models]
    assert not figure.legends
    for ax, model in zip(shown, models, strict=False):
        (bar,) = bars(ax)  # the one with error bars
        assert bar.lines[0].get_color() == PALETTE[0], model
        assert len({line.get_color() for line in ax.lines} - {PALETTE[0]}) == 1, (
            "the others, all alike"
        )
        assert list(ax.xaxis.get_majorticklocs()) == SIZES


def test_outlying_values_are_marked_at_the_top():
    rows = table(tuple("abcd"), ("nlpp",))
    rows.loc[(rows["model"] == "d") & (rows["n_train"] == 100), "mean"] = 28.22
    ax = learning_curve(rows).axes[0]
    assert ax.get_ylim()[1] < 2
    assert [
        line
        for line in ax.lines
        if line.get_marker() == "^" and list(line.get_ydata()) == [ax.get_ylim()[1]]
    ]


def test_unknown_se_draws_no_bar():
    rows = table(("a",), ("rmse",))
    rows["se"] = math.nan
    segments = bars(learning_curve(rows).axes[0])[0].lines[2][0].get_segments()
    assert all(np.ptp(s[:, 1]) == 0 for s in segments)
