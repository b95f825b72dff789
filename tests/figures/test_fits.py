"""Figures of predictions: toy fit, predicted against true, calibration, ROC; and the underlying
quantiles."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from support.runs.configured import F64, double, draw_normal, generator, normal, uniform
from support.small.small_problems import classes, component, real

from components.contracts.predictive import Categorical, GaussianMixture
from components.contracts.roles import Setting
from components.datasets.toys.multitask_toy import truth
from components.figures.style import PALETTE
from components.figures.supervised.calibration import calibration, coverage_curve, reliability_curve
from components.figures.supervised.predictions import predictions
from components.figures.supervised.roc import roc
from components.figures.supervised.toy_fit import toy_fit
from runner.execution.rng import Streams

SETTING = Setting(Path("nowhere"), torch.device("cpu"), F64, 1)


class Constant:
    """The same normal at every input."""

    def __init__(self, mean, sd):
        self.mean = double(mean)
        self.sd = sd

    def predict(self, x, generator):
        mu = self.mean.expand(1, x.shape[0], -1)
        return GaussianMixture(mu, torch.full_like(mu, self.sd**2))


class Scores:
    """Logits of class 1 given by the first input's position in a table."""

    def __init__(self, x, logits):
        self.x = x
        self.logits = logits

    def predict(self, x, generator):
        rows = torch.cdist(x, self.x).argmin(1)
        z = self.logits[rows]
        return Categorical(torch.stack([torch.zeros_like(z), z], -1)[None])


def test_quantiles_invert_the_distribution_function():
    g = generator()
    mixture = GaussianMixture(
        3 * normal(g, 5, 4, 2),
        uniform(g, 5, 4, 2) + 0.01,
    )
    for level in (0.01, 0.05, 0.5, 0.95):
        assert mixture.cdf(mixture.quantile(level)).numpy() == pytest.approx(level, abs=1e-9)
    task = GaussianMixture(mixture.mu[:1], mixture.v[:1])
    assert torch.allclose(task.quantile(0.95), task.mu[0] + 1.6448536269514722 * task.v[0].sqrt())


def test_toy_fit_uses_units_of_labels():
    problem = component("dataset", "multitask_toy", n_train=20).load(Streams(0), SETTING)
    figure = toy_fit(problem, Constant([0.0, 1.0], 0.5), Streams(0), truth=truth, n_grid=50)["fit"]
    for t, ax in enumerate(figure.axes):
        lines = {line.get_label(): line for line in ax.lines}
        x, draws = lines["truth"].get_data()
        assert np.allclose(draws, truth(torch.tensor(np.asarray(x)))[:, t])
        mean = float(problem.y_mean[t])
        std = float(problem.y_std[t])
        assert np.allclose(lines["predictive mean"].get_ydata(), mean + std * t)
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert band.min() == pytest.approx(mean + std * (t - 1.6448536 * 0.5))
        assert band.max() == pytest.approx(mean + std * (t + 1.6448536 * 0.5))
        points = next(c for c in ax.collections if isinstance(c, PathCollection)).get_offsets()
        observed = problem.train.mask[:, t]
        assert np.allclose(points[:, 0], problem.train.x[observed, 0])
        assert np.allclose(points[:, 1], mean + std * problem.train.y[observed, t])


def test_toy_fit_requires_one_input_and_real_labels():
    assert toy_fit(real(n_inputs=2), Constant([0, 0], 1), Streams(0)) == {}
    assert toy_fit(classes(), Constant([0, 0], 1), Streams(0)) == {}


def test_predictions_colour_points_outside_interval():
    problem = real(n=30)
    figure = predictions(problem, Constant([0.0, 0.0], 0.3), Streams(0))["predictions"]
    for t in range(2):
        ax = figure.axes[t]
        inside, outside = (c for c in ax.collections if isinstance(c, PathCollection))
        covered = problem.test.y[:, t].abs() <= 1.6448536 * 0.3
        assert len(inside.get_offsets()) == covered.sum()
        assert len(outside.get_offsets()) == (~covered).sum()
        assert tuple(inside.get_facecolor()[0]) == to_rgba(PALETTE[0])
        assert tuple(outside.get_facecolor()[0]) == to_rgba(PALETTE[1])
        bars = next(c for c in ax.collections if isinstance(c, LineCollection)).get_segments()
        assert np.ptp(bars[0][:, 1]) == pytest.approx(2 * 1.6448536 * 0.3)
        assert f"{100 * float(covered.double().mean()):.0f} % covered" in ax.get_title()


def test_predictions_thin_many_rows_and_skip_classes():
    problem = real(n=90)
    figure = predictions(problem, Constant([0.0, 0.0], 1.0), Streams(0), n_points=20)["predictions"]
    points = (c for c in figure.axes[0].collections if isinstance(c, PathCollection))
    assert sum(len(c.get_offsets()) for c in points) == 20
    assert predictions(classes(), None, Streams(0)) == {}


def test_prediction_titles_show_scores_of_run():
    problem = real(n=90)
    posterior = Constant([0.1, -0.2], 0.7)
    scores = problem.score(posterior, Streams(0))
    figure = predictions(problem, posterior, Streams(0), n_points=20)["predictions"]
    n = len(problem.test.x)
    assert f"all {n} test rows, 20 plotted" in figure.get_suptitle()
    for axis, name in zip(figure.axes, problem.task_names, strict=True):
        assert axis.get_title() == (
            f"{name}\nRMSE {scores[f'rmse/{name}']:.2f}, "
            f"{100 * scores[f'coverage90/{name}']:.0f} % covered"
        )
    figure = predictions(problem, posterior, Streams(0))["predictions"]
    assert "all drawn" in figure.get_suptitle()


def test_predictions_use_units_of_labels():
    problem = real(n=30)
    problem.y_mean = double([5.0, 6.0])
    problem.y_std = double([2.0, 3.0])
    posterior = Constant([0.0, 0.0], 0.3)
    for unit, label, scale in (("N m", "true label (N m)", 3.0), ("", "(standardised)", 1.0)):
        problem.label_unit = unit
        figure = predictions(problem, posterior, Streams(0))["predictions"]
        assert label in figure.axes[-1].get_xlabel()
        bars = next(c for c in figure.axes[1].collections if isinstance(c, LineCollection))
        assert np.ptp(bars.get_segments()[0][:, 1]) == pytest.approx(scale * 2 * 1.6448536 * 0.3)


@pytest.mark.parametrize(("sd", "kinds"), [(100.0, 1), (0.3, 2), (1e-9, 1)])
def test_prediction_legend_lists_drawn_artists(sd, kinds):
    figure = predictions(real(n=30), Constant([0.0, 0.0], sd), Streams(0))["predictions"]
    assert len(figure.legends[0].texts) == kinds


def test_calibration_states_number_of_rows():
    problem = real(n=50)
    n = len(problem.test.x)
    posterior = Constant([0.0, 0.0], 0.5)
    (axis,) = calibration(problem, posterior, Streams(0))["calibration"].axes
    assert f"all {n} test rows" in axis.get_title()
    (axis,) = calibration(problem, posterior, Streams(0), n_rows=7)["calibration"].axes
    assert f"7 of {n} test rows" in axis.get_title()


def test_calibrated_normal_covers_diagonal():
    inside = torch.linspace(0.0005, 0.9995, 1000, dtype=F64)
    levels = torch.linspace(0, 1, 11, dtype=F64)
    assert torch.allclose(coverage_curve(inside, levels), levels, atol=1e-12)


def test_real_calibration_counts_labels_inside():
    problem = real(n=50)
    figure = calibration(problem, Constant([0.0, 0.0], 0.5), Streams(0))["calibration"]
    y = problem.test.y
    for t in range(2):
        levels, fraction = figure.axes[0].lines[t].get_data()
        inside = y[:, t, None].abs().numpy() <= 0.5 * norm.ppf((1 + levels) / 2)
        assert fraction == pytest.approx(inside.mean(0))


def test_reliability_matches_bin_counts():
    p = double([0.05, 0.12, 0.18, 0.95, 1.0])
    happened = torch.tensor([False, False, True, True, True])
    mean, frequency, count = reliability_curve(p, happened, 10)
    assert mean.tolist() == pytest.approx([0.05, 0.15, 0.975])
    assert frequency.tolist() == [0, 0.5, 1]
    assert count.tolist() == [1, 2, 2]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_calibration_reports_ece(n_classes):
    problem = classes(n_classes=n_classes, n_tasks=2)
    logits = draw_normal(60, 2, n_classes)

    class Table:
        def predict(self, x, generator):
            return Categorical(logits[torch.cdist(x, problem.test.x).argmin(1)][None])

    figure = calibration(problem, Table(), Streams(0))["calibration"]
    scores = problem.score(Table(), Streams(0))
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == [f"{name}: ECE {scores[f'ece/{name}']:.3f}" for name in problem.task_names]
    assert figure.axes[0].get_ylabel() == ("frequency of class 1" if n_classes == 2 else "accuracy")


def test_roc_has_curve_and_area_per_task():
    problem = classes(n_classes=2, n_tasks=2)
    logits = draw_normal(60, 2)
    figure = roc(problem, Scores(problem.test.x, logits), Streams(0))["roc"]
    curves = figure.axes[0].lines[1:]  # the first is the diagonal
    assert len(curves) == 2
    for t, curve in enumerate(curves):
        observed = problem.test.mask[:, t]
        area = roc_auc_score(problem.test.y[observed, t], logits[observed, t])
        assert np.trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(area)
        assert f"AUC {area:.2f}" in curve.get_label()


def test_roc_requires_binary_labels():
    assert roc(real(), None, Streams(0)) == {}
    assert roc(classes(n_classes=3), None, Streams(0)) == {}


@pytest.mark.parametrize("figure", [partial(toy_fit, truth=truth), calibration])
def test_drawing_leaves_training_streams_unchanged(figure):
    problem = component("dataset", "multitask_toy", n_train=5).load(Streams(0), SETTING)
    rng = Streams(1)
    streams_state = rng.state()
    figure(problem, Constant([0.0, 0.0], 1.0), rng)
    assert all(torch.equal(streams_state[name], state) for name, state in rng.state().items())
