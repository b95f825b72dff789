"""Networks with a learned prior variance, or with point estimates of biases."""

import math

import pytest
import torch
from support.runs.configured import generator, normal
from support.small.small_problems import component, real
from torch.distributions import Normal
from torch.testing import assert_close

from runner.execution.rng import Streams

SMALL = {"widths": [4, 3], "activation": "leaky_relu"}


def build_pair(**keys):
    """The same network twice: plain, and with the given keys."""
    problem = real(n=6)
    plain = component("model", "mlp", prior_std=0.5, **SMALL).build(problem, Streams(3))
    return plain, component("model", "mlp", **{"prior_std": 0.5, **SMALL, **keys}).build(
        problem, Streams(3)
    )


@pytest.mark.parametrize(
    "keys",
    [{"biases": "point"}, {"prior_std": "learned"}, {"prior_std": "learned", "biases": "point"}],
)
def test_network_starts_like_the_plain_one(keys):
    plain, network = build_pair(**keys)
    x = real(n=6).train.x
    assert_close(network(x), plain(x), rtol=0, atol=0)
    assert_close(network.outputs(network.theta.expand(2, -1), x)[1], plain(x))


def test_point_biases_stay_in_the_layers():
    plain, network = build_pair(biases="point")
    weights = sum(out * inside for out, inside in plain.shapes)
    assert network.theta.shape == network.prior_std.shape == (weights,)
    assert sum(b.numel() for b in network.biases) == len(plain.theta) - weights
    for layer, b in enumerate(network.biases):
        b.data.copy_(torch.arange(len(b)) + 10.0 * layer)
    theta = normal(generator(0), 3, weights)
    offset = 0
    for layer, ((W, b), (out, inside)) in enumerate(
        zip(network.layers(theta), plain.shapes, strict=True)
    ):
        assert torch.equal(W, theta[:, offset : offset + out * inside].unflatten(1, (out, inside)))
        assert torch.equal(b, (torch.arange(out) + 10.0 * layer).expand(3, -1).to(b))
        offset += out * inside


def test_prior_follows_its_learned_variance():
    _, network = build_pair(prior_std="learned", prior_init=0.25)
    assert_close(network.prior_std, torch.full_like(network.theta, 0.25))
    theta = network.theta.detach() + 1
    log_p = Normal(0, network.prior_std).log_prob(theta).sum()
    log_p.backward()
    n = len(theta)
    v = 0.25**2
    # ∂/∂log σ₀² of −n/2 log σ₀² − ½ Σθ²/σ₀²
    expected = -0.5 * n + 0.5 * float(theta.square().sum()) / v
    assert float(network.log_prior_variance.grad) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("inference", ["mean_field_vi", "aadm", "bb_alpha"])
def test_variational_inference_moves_point_parameters(inference):
    problem = real(n=12)
    method = component(
        "inference", inference, **({"estimator": "weights"} if inference == "mean_field_vi" else {})
    )
    model = component(
        "model", "mlp", prior_std="learned", prior_init=math.exp(-2.5), biases="point", **SMALL
    )
    rng = Streams(1)
    network = model.build(problem, rng)
    originals = {name: p.detach().clone() for name, p in network.named_parameters()}
    state = method.init(network, problem, rng)
    for _ in range(3):
        state, _ = method.step(state, problem.train, rng)
    after = dict(state.q.network.named_parameters())
    for name in ["log_prior_variance", "biases.0", "biases.2", "network.log_noise"]:
        assert not torch.equal(after[name], originals[name]), name
    assert torch.equal(after["network.theta"], originals["network.theta"])  # the initial θ only
