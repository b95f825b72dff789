"""The gradient of a victim in its inputs: written out where a posterior offers it, in fewer digits
where asked for."""

import dataclasses
import math
import warnings

import pytest
import torch
from support.runs.configured import component, draw_normal, generator
from support.small.small_problems import classes, train
from support.small.small_victims import F64, Softmax, images
from torch.testing import assert_close

from components.attackers.attacked import Attacked, _zero_nonfinite_rows
from components.attackers.criteria import CRITERIA
from components.attackers.evasion import loop
from components.attackers.evasion.loop import Ascent, ascend
from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from components.posteriors.draws import Draws
from components.posteriors.networks import Networks
from components.posteriors.particles import BlockwiseParticles, Particles
from components.posteriors.point_estimate import PointEstimate
from runner.execution.rng import Streams

ACTIVATIONS = ("relu", "leaky_relu", "tanh", "gelu", "softplus", "identity")


def network(problem, **changes):
    return component("model", "mlp", **({"widths": [6, 1, 5]} | changes)).build(problem, Streams(0))


def posteriors(problem, activation="tanh", widths=(6, 1, 5)):
    """A victim of each kind, and how many rows of x are a block of it."""
    own = [network(problem, activation=activation, widths=list(widths)) for _ in range(2)]
    theta = draw_normal(3, own[0].dim)
    own[1].theta.data = theta[2].clone()
    biases = component("model", "mlp", widths=list(widths), activation=activation, biases="point")
    draws = Draws(theta[None], theta[:1], model=own[0])
    return [
        (PointEstimate(own[0]), 1),
        (PointEstimate(biases.build(problem, Streams(1))), 1),
        (Networks(tuple(own)), 1),
        (Particles(own[0], theta), 1),
        (BlockwiseParticles(own[0], theta), 3),
        (draws, 1),
    ]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_gradient_written_out_is_that_of_a_graph(activation, criterion):
    """∂/∂x Σ_b J(y_b, x_b) of the predictive itself, by autograd, for posteriors of one network, of
    several, of draws."""
    problem = classes(n=40, n_inputs=7, n_classes=4)
    for widths in ((), (6,), (6, 1, 5)):
        for posterior, blocks in posteriors(problem, activation, widths):
            x, y = problem.test.x.repeat(blocks, 1), problem.test.y.repeat(blocks, 1)
            y[::5] = -1
            assert posterior.reverse(x, generator()) is not None
            at = x.clone().requires_grad_()
            objective = CRITERIA[criterion](posterior.predict(at, generator()), y)
            (literal,) = torch.autograd.grad(objective.sum(), at)
            before = x.clone()
            ours = Attacked(posterior).answer(x, y, generator(), criterion)
            assert_close(ours.gradient, literal, rtol=1e-10, atol=1e-10)
            assert_close(ours.objective, objective.detach(), rtol=1e-10, atol=1e-10)
            assert torch.equal(
                Attacked(posterior).input_gradient(x, y, generator(), criterion), ours.gradient
            )
            assert torch.equal(x, before)  # what is overwritten is its own
            assert not ours.gradient[::5].any()


def test_rows_may_follow_criteria_of_their_own():
    model = Softmax(draws=3)
    x, y = images(model, 20)
    where = torch.arange(20) % 3 == 0
    victim = Attacked(model)
    margin, likelihood = (
        victim.input_gradient(x, y, generator(), c) for c in ("margin", "cross_entropy")
    )
    mixed = victim.input_gradient(x, y, generator(), "margin", where)
    assert_close(mixed, torch.where(where[:, None], margin, likelihood))


def test_a_whole_attack_is_the_same_with_a_graph():
    """The same bits where there is one network; its gradient is then made by the same products in
    the same order."""

    class Graph:
        def __init__(self, posterior):
            self.posterior = posterior

        def predict(self, x, g):
            return self.posterior.predict(x, g)

    problem = classes(n=60, n_inputs=7, n_classes=4, dtype=torch.float32)
    x, y = problem.test.x, problem.test.y
    for activation in ACTIVATIONS:
        posterior = PointEstimate(network(problem, widths=[16, 8], activation=activation))
        for how in (
            Ascent("linf", 10, 0.2, random_start=True, stop_when_broken=False),
            Ascent("l2", 10, 0.2, restarts=3),
        ):
            one, other = (
                ascend(Attacked(p), x, y, generator(3), 0.3, how)
                for p in (posterior, Graph(posterior))
            )
            assert torch.equal(one, other)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("image", [(1, 8, 8), (2, 5, 7)])
def test_strided_convolutions_written_out_are_those_of_a_graph(activation, image):
    problem = classes(n=30, n_inputs=math.prod(image), n_classes=3)
    problem.image_shape = image
    x, y = problem.test.x, problem.test.y
    for kernel, widths in ((3, []), (5, [4])):
        settings = {"channels": [2, 3], "kernel": kernel, "widths": widths}
        model = component(
            "model", "cnn", downsampling="stride", activation=activation, **settings
        ).build(problem, Streams(0))
        posterior = PointEstimate(model)
        assert posterior.reverse(x, generator()) is not None
        at = x.clone().requires_grad_()
        log_prob = CRITERIA["cross_entropy"](posterior.predict(at, generator()), y)
        (literal,) = torch.autograd.grad(log_prob.sum(), at)
        before = x.clone()
        ours = Attacked(posterior).answer(x, y, generator())
        assert_close(ours.gradient, literal, rtol=1e-10, atol=1e-10)
        assert_close(ours.objective, log_prob.detach(), rtol=1e-10, atol=1e-10)
        assert torch.equal(x, before)
    several = model.theta.detach().repeat(2, 1)
    assert model.reverse_with_weights(several, x) is None  # one network after the other


def test_slopes_that_are_no_numbers_are_zero_and_found():
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


def test_pooled_convolutions_and_weighted_draws_are_followed_along_a_graph():
    problem = classes(n=20, n_inputs=16, n_classes=3)
    problem.image_shape = (4, 4)
    cnn = component("model", "cnn", channels=[2], widths=[4]).build(problem, Streams(0))
    assert PointEstimate(cnn).reverse(problem.test.x, generator()) is None
    plain = network(problem)
    theta = draw_normal(1, 4, plain.dim)
    weighted = Draws(theta, theta[:, 0], model=plain, log_weights=torch.zeros(1, 4, dtype=F64))
    assert weighted.reverse(problem.test.x, generator()) is None
    for posterior in (PointEstimate(cnn), weighted):
        assert (
            Attacked(posterior)
            .input_gradient(problem.test.x, problem.test.y, generator())
            .isfinite()
            .all()
        )


def test_nobody_is_judged_on_the_way_where_success_is_not_asked():
    """An attack along a single draw that goes on to its end asks the whole predictive nothing."""
    model = Softmax(draws=12)
    x, y = images(model, 30)
    model.calls = 0
    ascend(
        Attacked(model, (0.0, 1.0), "single_draw"),
        x,
        y,
        generator(),
        0.2,
        Ascent("linf", 5, 0.2, stop_when_broken=False),
    )
    assert model.calls == 0


# ---- gradients in bfloat16
# -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    problem = classes(n=200, n_inputs=7, n_classes=3, dtype=torch.float32)
    model = component("model", "mlp", widths=[32, 16])
    method = component("inference", "map", lr=0.02)
    state, _ = train(method, model, problem, 150)
    return problem, method.posterior(state)


def test_rounded_gradients_are_those_of_a_copy_in_that_format(trained):
    problem, posterior = trained
    x, y = problem.test.x, problem.test.y
    exact, rounded = (Attacked(posterior).round_gradient(p) for p in ("full", "bfloat16"))
    one, other = (v.input_gradient(x, y, generator()) for v in (exact, rounded))
    assert other.dtype == x.dtype
    assert not torch.equal(one, other)
    # bfloat16 keeps 8 binary digits: sums of a few dozen products are right to a few per cent of
    # the largest slope.
    assert float((one - other).abs().max() / one.abs().max()) < 0.05
    assert (one.sign() == other.sign()).double().mean() > 0.95
    assert rounded.posterior is posterior  # as it was


@pytest.mark.parametrize("target", [None, 1])
def test_a_rounded_gradient_never_decides_success(trained, target):
    """A copy that lies about every row stops none that the victim itself does not give up, and none
    is stopped unseen."""
    problem, posterior = trained
    x, y = problem.test.x, problem.test.y
    aim = target is None

    class Liar:
        """Says of every row what the attack would like to hear, and has the victim's own
        gradient."""

        def predict(self, z, g):
            f = posterior.predict(z.to(x.dtype), g).logits
            liked = (y[: len(z)] + 1) % 3 if aim else torch.full_like(y[: len(z)], target)
            lie = torch.zeros_like(f).scatter_(-1, liked[None, ..., None], 100.0)
            return Categorical(f - f.detach() + lie)

    victim = dataclasses.replace(Attacked(posterior, None), shadow=Liar(), precision="bfloat16")
    labels = y if aim else torch.full_like(y, target)
    told = victim.answer(x, labels, generator(), aim=aim)
    assert torch.equal(told.broken, Attacked(posterior).broken(x, labels, generator()))


def test_the_rounded_attack_is_as_strong_and_stops_where_the_victim_errs(trained):
    problem, posterior = trained
    x, y = problem.test.x, problem.test.y
    victim = Attacked(posterior)
    left = {}
    for precision in ("full", "bfloat16"):
        for restarts in (1, 3):
            how = Ascent(
                "linf", 20, 0.125, random_start=True, restarts=restarts, precision=precision
            )
            moved = ascend(victim, x, y, generator(1), 0.2, how)
            assert (moved - x).abs().max() <= 0.2 + 1e-6
            left[precision, restarts] = float(
                (~victim.broken(moved, y, generator())).double().mean()
            )
    for restarts in (1, 3):
        assert 0 < left["full", restarts] < 1
        assert abs(left["full", restarts] - left["bfloat16", restarts]) <= 0.02


def test_posteriors_of_networks_have_a_copy_in_the_format_and_others_are_refused():
    problem = classes(n=40, n_inputs=7, n_classes=4, dtype=torch.float32)
    x, y = problem.test.x, problem.test.y
    for posterior, blocks in posteriors(classes(n=40, n_inputs=7, n_classes=4)):
        single = Attacked(posterior).input_gradient(
            x.double().repeat(blocks, 1), y.repeat(blocks, 1), generator()
        )
        rounded = Attacked(posterior).round_gradient("bfloat16")
        ours = rounded.input_gradient(
            x.double().repeat(blocks, 1), y.repeat(blocks, 1), generator()
        )
        assert float((ours - single).norm() / single.norm()) < 0.05
    with pytest.raises(
        ConfigMismatchError,
        match=r"attacker\.precision=bfloat16: this victim cannot be computed in that format",
    ):
        Attacked(Softmax()).round_gradient("bfloat16")


@pytest.mark.parametrize("has", [True, False])
def test_where_the_cpu_does_not_multiply_the_format_one_line_says_so(trained, monkeypatch, has):
    problem, posterior = trained
    monkeypatch.setattr(loop, "multiplies", lambda precision: has)
    attacker = component("attacker", "fgsm", precision="bfloat16")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        attacker.perturb(Attacked(posterior), problem.test.x, problem.test.y, Streams(0), 0.1)
    assert [w.category for w in told] == ([] if has else [QuestionableConfigWarning])
    assert has or "use attacker.precision=full" in str(told[0].message)
