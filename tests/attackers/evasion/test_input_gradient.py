"""The gradient of a victim with respect to its inputs: analytic where the posterior provides it,
and rounded on request."""

import math
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import F64, component, draw_normal, generator
from support.small.network_victims import build_network, build_network_victims
from support.small.small_problems import classes
from support.small.small_victims import make_victim
from torch.testing import assert_close

from components.attackers.attacked import Attacked, _zero_nonfinite_rows
from components.attackers.criteria import CRITERIA
from components.attackers.evasion.loop import Ascent, ascend
from components.posteriors.draws import Draws
from components.posteriors.point_estimate import PointEstimate
from runner.execution.rng import Streams

ACTIVATIONS = ("relu", "leaky_relu", "tanh", "gelu", "softplus", "identity")


def check_against_graph(posterior, x, y, criterion):
    """Assert that the objective and its gradient match autograd, for rows with and without a label,
    and that the inputs are unchanged."""
    y[::5] = -1
    assert posterior.reverse(x, generator()) is not None
    leaf = x.clone().requires_grad_()
    objective = CRITERIA[criterion](posterior.predict(leaf, generator()), y)
    (literal,) = torch.autograd.grad(objective.sum(), leaf)
    original = x.clone()
    victim = Attacked(posterior)
    ours = victim.answer(x, y, generator(), criterion)
    assert_close(ours.gradient, literal, rtol=1e-10, atol=1e-10)
    assert_close(ours.objective, objective.detach(), rtol=1e-10, atol=1e-10)
    assert torch.equal(victim.input_gradient(x, y, generator(), criterion), ours.gradient)
    assert torch.equal(x, original)
    assert not ours.gradient[::5].any()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_analytic_gradient_matches_autograd(activation, criterion):
    """∂/∂x Σ_b J(y_b, x_b) of the predictive by autograd, for posteriors with one network, several
    networks, and draws."""
    problem = classes(n=40, n_inputs=7, n_classes=4)
    for widths in ((), (6,), (6, 1, 5)):
        for posterior, blocks in build_network_victims(problem, activation, widths):
            x = problem.test.x.repeat(blocks, 1)
            y = problem.test.y.repeat(blocks, 1)
            check_against_graph(posterior, x, y, criterion)


def test_rows_follow_their_own_criteria():
    model, x, y = make_victim(20, draws=3)
    where = torch.arange(20) % 3 == 0
    victim = Attacked(model)
    margin, likelihood = (
        victim.input_gradient(x, y, generator(), c) for c in ("margin", "cross_entropy")
    )
    mixed = victim.input_gradient(x, y, generator(), "margin", where)
    assert_close(mixed, torch.where(where[:, None], margin, likelihood))


def test_attack_is_identical_with_autograd():
    """Bit-identical for a single network, because its gradient is computed by the same products in
    the same order."""

    problem = classes(n=60, n_inputs=7, n_classes=4, dtype=torch.float32)
    x = problem.test.x
    y = problem.test.y
    for activation in ACTIVATIONS:
        posterior = PointEstimate(build_network(problem, widths=[16, 8], activation=activation))
        for settings in (
            Ascent("linf", 10, 0.2, random_start=True, stop_when_broken=False),
            Ascent("l2", 10, 0.2, restarts=3),
        ):
            first, other = (
                ascend(Attacked(p), x, y, generator(3), 0.3, settings)
                for p in (posterior, SimpleNamespace(predict=posterior.predict))
            )
            assert torch.equal(first, other)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("image", [(1, 8, 8), (2, 5, 7)])
def test_strided_convolution_gradients_match_autograd(activation, image):
    problem = classes(n=30, n_inputs=math.prod(image), n_classes=3)
    problem.image_shape = image
    x = problem.test.x
    y = problem.test.y
    for kernel, widths in ((3, []), (5, [4])):
        settings = {"channels": [2, 3], "kernel": kernel, "widths": widths}
        model = component(
            "model", "cnn", downsampling="stride", activation=activation, **settings
        ).build(problem, Streams(0))
        check_against_graph(PointEstimate(model), x, y, "cross_entropy")
    several = model.theta.detach().repeat(2, 1)
    assert model.reverse_with_weights(several, x) is None  # one network after the other


def test_nonfinite_slopes_are_zeroed_and_reported():
    slopes = torch.ones(4, 3)
    slopes[1, 0] = torch.inf
    slopes[2, 1:] = torch.tensor([torch.inf, -torch.inf])
    slopes[3, 2] = torch.nan
    kept, finite = _zero_nonfinite_rows(slopes)
    assert finite.tolist() == [True, False, False, False]
    assert kept.isfinite().all()
    assert kept.sum() == 3 + 2 + 1 + 2
    large = torch.full((2, 3), torch.finfo(torch.float32).max)  # finite, though the sum is not
    kept, finite = _zero_nonfinite_rows(large)
    assert finite.all()
    assert torch.equal(kept, large)


def test_pooling_and_weighted_draws_use_autograd():
    problem = classes(n=20, n_inputs=16, n_classes=3)
    problem.image_shape = (4, 4)
    cnn = component("model", "cnn", channels=[2], widths=[4]).build(problem, Streams(0))
    assert PointEstimate(cnn).reverse(problem.test.x, generator()) is None
    plain = build_network(problem)
    theta = draw_normal(1, 4, plain.dim)
    weighted = Draws(theta, theta[:, 0], model=plain, log_weights=torch.zeros(1, 4, dtype=F64))
    assert weighted.reverse(problem.test.x, generator()) is None
    for posterior in (PointEstimate(cnn), weighted):
        victim = Attacked(posterior)
        assert victim.input_gradient(problem.test.x, problem.test.y, generator()).isfinite().all()


def test_success_is_evaluated_only_on_request():
    """An attack along a single draw without early stopping never evaluates the full predictive."""
    model, x, y = make_victim(30, draws=12)
    model.calls = 0
    settings = Ascent("linf", 5, 0.2, stop_when_broken=False)
    ascend(Attacked(model, (0.0, 1.0), "single_draw"), x, y, generator(), 0.2, settings)
    assert model.calls == 0
