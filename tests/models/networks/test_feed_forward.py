import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, build_model, generator
from support.small.small_nets import tanh_layers
from support.small.small_problems import classes, component, real
from torch.distributions import Normal
from torch.testing import assert_close

from components.models.networks.feed_forward import FeedForward
from runner.execution.rng import Streams


def build(problem, seed=0, **options):
    defaults = {
        "widths": [5, 4],
        "activation": "tanh",
        "dropout": 0.0,
        "prior_std": 0.7,
        "noise": "learned",
        "noise_init": 0.3,
        "noise_spread": 1.5,
    }
    return FeedForward(problem, Streams(seed), **{**defaults, **options})


@pytest.mark.parametrize("problem", [real(n=4), classes(n=4, n_tasks=2)])
def test_forward_equals_a_literal_network(problem):
    network = build(problem)
    x = problem.train.x
    shape = (4, problem.n_tasks, problem.n_classes)
    assert_close(network(x), tanh_layers(network.theta, x, network.shapes).view(shape))
    theta = network.sample_prior(3, generator(1))
    expected = torch.stack([tanh_layers(k, x, network.shapes).view(shape) for k in theta])
    assert_close(network.outputs(theta, x), expected)
    # passes without dropout are copies of the one pass
    assert torch.equal(network(x, torch.Generator(), 2), network(x).expand(2, *shape))


def test_real_likelihood_ignores_missing_labels():
    problem = real(n=6)
    network = build(problem)
    batch = problem.train
    f = network(batch.x)
    variance = network.log_noise.exp()
    square = (batch.y.nan_to_num() - f[..., 0]).square()
    each = -0.5 * (2 * math.pi * variance).log() - square / (2 * variance)
    assert_close(network.log_prob(f, batch), (each * batch.mask).sum(1))
    # NaN of a missing label must not reach the gradient
    network.log_prob(f, batch).sum().backward()
    assert torch.isfinite(network.theta.grad).all()
    assert torch.isfinite(network.log_noise.grad).all()


def test_class_likelihood_equals_equation_3_13():
    problem = classes(n=6, n_tasks=2)
    network = build(problem)
    batch = problem.train
    f = network(batch.x)
    label_logits = f.gather(2, batch.y[..., None])[..., 0]
    each = (label_logits.exp() / f.exp().sum(2)).log()  # eq. (3.13)
    assert_close(network.log_prob(f, batch), (each * batch.mask).sum(1))
    missing = batch.y.clone()
    missing[~batch.mask] = -1  # missing labels may have any value
    other = replace(batch, y=missing, scale=1.0)
    assert torch.equal(network.log_prob(f, batch), network.log_prob(f, other))


@pytest.mark.parametrize("options", [{}, {"noise": 0.2}])
def test_log_joint_equals_the_module(options):
    problem = real()
    network = build(problem, **options)
    batch = problem.train
    parameters = network.theta if options else torch.cat([network.theta, network.log_noise])
    theta = torch.stack([parameters.detach(), 2 * parameters.detach()])
    assert_close(network.log_likelihood(theta, batch)[0], network.log_prob(network(batch.x), batch))
    assert network.dim == theta.shape[1] == len(network.theta) + (0 if options else 2)
    # log_prior is a normalised density; penalty is its negative up to a constant
    normal = Normal(0.0, 0.7).log_prob(theta[:, : len(network.theta)]).sum(1)
    if not options:
        normal = normal + Normal(math.log(0.3), 1.5).log_prob(theta[:, -2:]).sum(1)
    assert_close(network.log_prior(theta), normal)
    constant = network.penalty() + network.log_prior(theta)[0]
    with torch.no_grad():
        network.theta *= 2
        if not options:
            network.log_noise *= 2
    assert_close(network.penalty() + network.log_prior(theta)[1], constant)
    # particles have the predictions of the module, with their own noise
    ours = network.predictive(theta[1:], batch.x)
    expected = network.output_predictive(network(batch.x)[None])
    assert_close((ours.mu, ours.v), (expected.mu, expected.v))


def test_prior_samples_have_the_moments_of_the_prior():
    network = build(real())
    theta = network.sample_prior(4000, generator(2))
    n = len(network.theta)
    for block, mean, std in ((theta[:, :n], 0.0, 0.7), (theta[:, n:], math.log(0.3), 1.5)):
        z = (block.mean() - mean) / (std / block.numel() ** 0.5)
        assert abs(float(z)) < 4
        z = ((block - mean).square().mean() / std**2 - 1) / (2 / block.numel()) ** 0.5
        assert abs(float(z)) < 4


def test_glorot_initialisation_has_its_limits():
    """Uniform on ±√(6/(fan in + fan out)), separately for each head; biases 0 (Glorot and Bengio
    2010, eq. 16)."""
    problem = classes(n_inputs=30, n_classes=3, n_tasks=4)
    network = build(problem, widths=[200])
    (w1, b1), (w2, b2) = network.layers(network.theta.detach())
    assert torch.equal(b1, torch.zeros(200, dtype=F64))
    assert torch.equal(b2, torch.zeros(12, dtype=F64))
    for w, limit in ((w1, math.sqrt(6 / 230)), (w2, math.sqrt(6 / 203))):
        assert 0.98 * limit < w.abs().max() <= limit
        assert w.std() == pytest.approx(limit / math.sqrt(3), rel=0.03)


def test_dropout_masks_and_rescales_hidden_units_only():
    """A network of one layer of ones: f counts the kept units, each worth 1/(1 − p)."""
    problem = real(n=50, n_inputs=1, n_tasks=1)
    network = build(problem, widths=[40], dropout=0.25, activation="identity")
    (w1, b1), (w2, b2) = network.layers(network.theta.detach())
    w1.zero_(), b1.fill_(1.0), w2.fill_(1.0), b2.zero_()
    x = problem.train.x
    f = network(x, generator(3), 400).detach()
    assert f.shape == (400, 50, 1, 1)
    kept = f * 0.75
    assert_close(kept, kept.round())
    n = f.numel() * 40
    assert abs(float(kept.mean()) / 40 - 0.75) < 4 * math.sqrt(0.75 * 0.25 / n)
    # off without a generator
    assert torch.equal(network(x), torch.full((50, 1, 1), 40.0, dtype=F64))


def test_l2_is_a_gaussian_prior():
    """λ Σ θ² on the mean loss is −log N(θ | 0, 1/(2λN)) / N, up to a constant."""
    problem = real()
    module = build_model("mann2", problem, l2=0.03)
    assert_close(module.penalty() / problem.n, 0.03 * module.theta.square().sum())


def test_network_without_hidden_units_is_multinomial_regression():
    """Gallego (2021), 1.3.4, "linear multinomial regression": the softmax form of
    logistic_regression, with θ in another order."""
    problem = classes(n_classes=3)
    rng = Streams(0)
    network = component("model", "mlp", widths=[]).build(problem, rng)
    regression = build_model("logistic_regression", problem, prior_scale=1.0, intercept_scale=1.0)
    theta = network.initial(4, rng.init) + 0.1
    W = theta[:, :12].view(4, 3, 4)
    b = theta[:, 12:].view(4, 3, 1)
    same = torch.cat([b, W], 2).flatten(1)
    assert_close(
        network.log_likelihood(theta, problem.train), regression.log_likelihood(same, problem.train)
    )
    assert_close(network.log_prior(theta), regression.log_prior(same))
