"""Scales, windows and markers of figures with few or nearly equal numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import F64, draw_normal

from components.figures.attacked.error_curve import error_curve_figure
from components.figures.style import LINES, new_figure
from components.figures.variational.bound_by_start import bound_by_start
from components.figures.variational.gradient_variance import _plain
from components.games.figures.rewards import reward_curves
from components.series.figures.advertising.budget import MOST_WEEKS, budget_figure
from components.series.figures.coverage import FEWEST, _window_coverage, coverage


def trajectories(replicates, names=("x", "v")):
    truth = torch.zeros(1, 60, len(names), dtype=F64)
    labels = [f"{names[0]}, m", *names[1:]]
    return SimpleNamespace(states=truth, state_names=list(names), state_labels=labels)


def smoother_result(replicates):
    mean = draw_normal(replicates, 60, 2)
    return SimpleNamespace(mean=mean, lower=mean - 1, upper=mean + 1)


@pytest.mark.parametrize(("replicates", "size"), [(1, 20), (4, 5), (100, 2)])
def test_coverage_windows_hold_enough_states(replicates, size):
    centres, level = _window_coverage(torch.ones(replicates, 60, 2, dtype=F64))
    assert len(centres) == len(level) == 60 // size
    assert replicates * size >= FEWEST
    assert centres[0] == (size + 1) / 2


@pytest.mark.parametrize(("replicates", "points", "boxes"), [(3, 2, 0), (5, 0, 2)])
def test_few_replicates_are_drawn_as_points(replicates, points, boxes):
    figure = coverage(trajectories(replicates), smoother_result(replicates))["coverage"]
    right = figure.axes[1]
    assert len(right.patches) == boxes
    lines = [line for line in right.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert len([line for line in lines if len(line.get_xdata()) == replicates]) == points
    assert right.get_ylabel() == "RMSE, m"


@pytest.mark.parametrize(("largest", "scale"), [(2.0, "linear"), (100.0, "log")])
def test_wide_range_of_errors_has_logarithmic_axis(largest, scale):
    errors = torch.tensor([[1.0, 1.1], [largest, largest]])
    (axis,) = error_curve_figure([0, 1], errors, errors, "rmse", True).axes
    assert axis.get_yscale() == scale
    assert "2 replicates" in axis.get_title()
    if scale == "linear":
        assert axis.get_ylim()[0] == 0


def test_best_bound_is_omitted_from_logarithmic_gap():
    bounds = torch.tensor([[-3.0, -4.0], [-2.0, -3.0], [-1.0, -1.5]])
    right = bound_by_start(bounds, "ELBO")["bound_by_start"].axes[1]
    best = next(line for line in right.lines if line.get_linewidth() > 1.5).get_ydata()
    assert best[:2].tolist() == [2, 1]
    assert np.isnan(best[2])


def test_reward_curves_have_distinct_lines_or_points():
    same = torch.ones(2, 30)
    (axis,) = reward_curves({"a": same, "b": same}, 10).axes
    assert [line.get_linestyle() for line in axis.lines] == LINES[:2]
    assert "2 replicates" in axis.get_title()
    (axis,) = reward_curves({"a": same[:1]}, 30).axes
    assert axis.lines[0].get_marker() == "o"
    assert axis.get_title() == "1 replicate"


@pytest.mark.parametrize(("high", "named"), [(3.0, True), (50.0, True), (1e5, False)])
def test_narrow_logarithmic_axis_labels_minor_ticks(high, named):
    figure, (axis,) = new_figure()
    axis.plot([1, high], [1, high])
    axis.set(xscale="log", yscale="log", xlim=(1, high), ylim=(1, high))
    _plain(axis)
    figure.draw_without_rendering()
    assert any(text.get_text() for text in axis.get_xticklabels(minor=True)) == named


@pytest.mark.parametrize("n", [4, 60])
def test_weeks_of_plan_do_not_touch(n):
    plan = SimpleNamespace(sd=1.0, mean=2.0)
    choice = SimpleNamespace(name="the plan", verdict="kept", sd=1.0, mean=2.0, u=np.ones(n))
    weeks = [f"2024-01-{k:02}" for k in range(n)]
    _, right = budget_figure([plan], [choice], ["TV"], weeks).axes
    names = [text.get_text() for text in right.get_xticklabels()]
    assert names == weeks[:: -(-n // MOST_WEEKS)]
    assert len(names) <= MOST_WEEKS
