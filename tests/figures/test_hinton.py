"""Hinton diagrams: the right squares in the right colours."""

from types import SimpleNamespace

import pytest
import torch
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from support.runs.configured import double
from support.small.small_problems import component, real

from components.figures.style import PALETTE
from components.figures.supervised.hinton import hinton, hinton_diagram
from runner.execution.rng import Streams

WEIGHTS = double([[4.0, 1.0, 0.0, 0.25], [0.5, 2.0, 3.0, 0.01]])
NAMES = ["g1", "g2", "h1", "x1"]


def squares(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def test_areas_are_proportional_to_weights():
    squares_drawn = squares(hinton_diagram(WEIGHTS, NAMES, ["a", "b"]))
    assert len(squares_drawn) == WEIGHTS.numel()
    for d in range(4):
        for t in range(2):
            square = squares_drawn[2 * d + t]
            assert square.get_width() == square.get_height()
            assert square.get_width() * square.get_height() == pytest.approx(
                0.92**2 * float(WEIGHTS[t, d]) / 4.0
            )
            centre = (
                square.get_x() + square.get_width() / 2,
                square.get_y() + square.get_height() / 2,
            )
            assert centre == pytest.approx((d, t)), "tasks × processes"


def test_colours_distinguish_kinds_of_process():
    figure = hinton_diagram(WEIGHTS, NAMES, ["a", "b"])
    colours = [square.get_facecolor() for square in squares(figure)]
    assert colours == [to_rgba(c) for c in (PALETTE[0],) * 4 + (PALETTE[1],) * 2 + ("0.45",) * 2]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["shared process", "task-specific process", "input passed on"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [
        "$g_{1}$",
        "$g_{2}$",
        "$h_{1}$",
        "$x_{1}$",
    ]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]


def test_zero_weights_are_not_drawn():
    assert all(
        s.get_width() == 0 for s in squares(hinton_diagram(torch.zeros(1, 2), ["g1", "g2"], ["a"]))
    )


@pytest.mark.parametrize(
    ("model", "letters"), [("mmdgp", "gggh"), ("smdgp", "ggg"), ("cmdgp", "λλλ"), ("idgp", "hhh")]
)
def test_hinton_draws_every_deep_gp(model, letters):
    problem = real()
    rng = Streams(0)
    module = component("model", model, inner_dim=3, n_inducing=8).build(problem, rng)
    figure = hinton(problem, SimpleNamespace(module=module), rng)["hinton"]
    assert len(squares(figure)) == problem.n_tasks * len(letters)
    assert (
        "".join(label.get_text()[1] for label in figure.axes[0].get_xticklabels()).replace(
            "\\", "λ"
        )
        == letters
    )


def test_many_passed_inputs_share_one_column():
    problem = real(n_inputs=50)
    rng = Streams(0)
    module = component("model", "smdgp", inner_dim=2, n_inducing=8, pass_inputs=True).build(
        problem, rng
    )
    figure = hinton(problem, SimpleNamespace(module=module), rng)["hinton"]
    assert len(squares(figure)) == 2 * 3
    areas = [s.get_width() ** 2 for s in squares(figure)]
    assert areas[4] / areas[0] == pytest.approx(50), (
        "equal weights at the start: the sum of 50 against one"
    )
    assert figure.axes[0].get_xticklabels()[-1].get_text() == r"$x_{\Sigma}$"


def test_hinton_requires_weights():
    assert hinton(real(), SimpleNamespace(), Streams(0)) == {}
    assert hinton(real(), SimpleNamespace(module=torch.nn.Linear(1, 1)), Streams(0)) == {}
