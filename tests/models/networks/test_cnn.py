import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, generator, normal
from support.small.small_problems import classes, component, tensors, train, train_and_resume
from torch.autograd import grad, gradcheck
from torch.nn import functional as F
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.errors import ConfigMismatchError
from components.models.networks.strided_convolution import convolve
from runner.execution.rng import Streams


def images(n=20, shape=(6, 5), n_classes=3, dtype=F64, unit=1.0):
    """Uniform images in the units of the dataset, [0, unit]."""
    problem = classes(
        n=n, n_inputs=math.prod(shape), n_classes=n_classes, batch_size=8, dtype=dtype
    )
    problem.image_shape = shape
    problem.bounds = (0.0, unit)
    for name in ("train", "test"):
        batch = getattr(problem, name)
        setattr(problem, name, replace(batch, x=unit * batch.x))
    return problem


def cnn(**changes):
    return component(
        "model", "cnn", **({"channels": [2], "widths": [4], "activation": "tanh"} | changes)
    )


def literally(theta, x, shape, channels, k, widths, stride, flip=False):
    """Images [B, D] normalised, convolved, tanh, pooled 2 × 2 (or every second value), then the
    affine layers, by torch's functions with weights stored consecutively in θ."""
    offset = 0

    def take(*size):
        nonlocal offset
        offset += math.prod(size)
        return theta[offset - math.prod(size) : offset].view(size)

    pixels = images(n=3, shape=shape).train.x.view(3, -1, *shape[-2:])
    std, mean = torch.std_mean(pixels, (0, 2, 3), correction=0, keepdim=True)
    h = (x.view(len(x), -1, *shape[-2:]) - mean) / std
    for out in channels:
        w = take(out, h.shape[1], k, k)
        b = take(out)
        h = F.conv2d(h, w.flip(2, 3) if flip else w, b, padding=k // 2).tanh()
        h = h[..., ::2, ::2] if stride else F.max_pool2d(h, 2)
    h = h.flatten(1)
    for out in widths:
        h = F.linear(h, take(out, h.shape[1]), take(out)).tanh()
    h = F.linear(h, take(3, h.shape[1]), take(3))
    assert offset == len(theta)
    return h


@pytest.mark.parametrize(
    ("shape", "channels", "kernel", "widths", "downsampling"),
    [
        ((6, 5), [2], 3, [4], "pool"),
        ((5, 7), [2, 3], 5, [], "pool"),
        ((3, 4, 6), [2], 1, [3], "pool"),
        ((6, 5), [2], 3, [4], "stride"),
        ((3, 5, 7), [2, 3], 5, [], "stride"),
    ],
)
def test_forward_equals_a_literal_convolution(shape, channels, kernel, widths, downsampling):
    problem = images(n=3, shape=shape)
    network = cnn(channels=channels, kernel=kernel, widths=widths, downsampling=downsampling).build(
        problem, Streams(0)
    )
    theta = network.sample_prior(2, generator(1))
    settings = shape, channels, kernel, widths, downsampling == "stride"
    expected = torch.stack([literally(k, problem.test.x, *settings) for k in theta])
    assert_close(network.outputs(theta, problem.test.x)[:, :, 0], expected)
    particle_images = torch.stack([problem.test.x, problem.train.x])  # each particle its own images
    assert_close(network.outputs(theta, particle_images)[0, :, 0], expected[0])
    assert_close(
        network.outputs(theta, particle_images)[1], network.outputs(theta, problem.train.x)[1]
    )
    network.theta.data.copy_(theta[1])
    assert_close(network(problem.test.x)[:, 0], expected[1])
    if kernel > 1:  # a flipped kernel is another network
        wrong = literally(theta[0], problem.test.x, *settings, flip=True)
        assert (wrong - expected[0]).abs().max() > 1e-3


def test_normalisation_is_inside_the_model():
    """Grey levels in [0, 255] and in [0, 1] give the same network, and gradients in the units of
    the inputs."""
    gradients = []
    answers = []
    for unit in (1.0, 255.0):
        problem = images(unit=unit)
        network = cnn().build(problem, Streams(0))
        x = problem.test.x.clone().requires_grad_()
        f = network(x)
        answers.append(f.detach())
        gradients.append(unit * grad(f.square().sum(), x)[0])
        pixels = problem.train.x
        scaled = (pixels.unflatten(1, (1, 6, 5)) - network.front.mean) / network.front.std
        assert abs(float(scaled.mean())) < 1e-12
        assert_close(float(scaled.std(correction=0)), 1.0)
    assert_close(*answers)
    assert_close(*gradients)
    blank = images()
    blank.train = replace(blank.train, x=torch.zeros_like(blank.train.x))
    # constant pixels
    assert torch.isfinite(cnn().build(blank, Streams(0))(blank.test.x)).all()


@pytest.mark.parametrize("downsampling", ["pool", "stride"])
def test_gradients_equal_finite_differences(downsampling):
    problem = images(n=4)
    network = cnn(downsampling=downsampling).build(problem, Streams(0))
    theta = network.sample_prior(2, generator(0)).requires_grad_()
    assert gradcheck(network.outputs, (theta, problem.test.x.clone().requires_grad_()))


def test_strided_convolution_equals_the_library():
    g = generator(0)
    for shape, k, stride in (((3, 2, 6, 5), 3, 2), ((2, 1, 9, 8), 5, 3), ((2, 3, 4, 4), 1, 2)):
        x = normal(g, shape)
        kernels = normal(g, 4, shape[1], k, k)
        bias = normal(g, 4)
        inputs = tuple(z.requires_grad_() for z in (x, kernels, bias))
        ours = convolve(*inputs, stride)
        theirs = F.conv2d(*inputs, stride=stride, padding=k // 2)
        assert_close(ours, theirs)
        along = normal(g, ours.shape)
        assert_close(grad(ours, inputs, along), grad(theirs, inputs, along))
        assert torch.autograd.gradgradcheck(lambda *z, s=stride: convolve(*z, s), inputs)


def test_glorot_limits_count_the_window():
    problem = images(shape=(8, 8))
    network = cnn(channels=[64, 32], widths=[200]).build(problem, Streams(0))
    (w1, _), (w2, b2), (w3, _), (w4, _) = network.layers(network.theta.detach())
    assert not b2.any()
    fans = (9 + 64 * 9, 64 * 9 + 32 * 9, 328, 203)
    for w, fan in zip((w1, w2, w3, w4), fans, strict=True):
        assert 0.97 < float(w.abs().max()) / math.sqrt(6 / fan) <= 1


def test_dropout_acts_on_features_and_hidden_units():
    """Without hidden layers f is linear in the features: over masks its mean is f and its variance
    p/(1−p) Σ (w h)²."""
    problem = images(n=2)
    p = 0.3
    S = 20000
    network = cnn(widths=[], dropout=p).build(problem, Streams(0))
    x = problem.test.x
    f = network(x, generator(0), S).detach()
    layers = network.layers(network.theta.detach())
    h = network.front(x, layers[:1])
    variance = p / (1 - p) * (h.square() @ layers[1][0].square().T)
    z = (f.mean(0)[:, 0] - network(x).detach()[:, 0]) / (variance / S).sqrt()
    assert z.abs().max() < 4.5
    assert_close(f.var(0)[:, 0], variance, rtol=0.1, atol=0)
    deep = cnn(widths=[3], dropout=p).build(problem, Streams(0))
    assert deep(x, generator(), 5).shape == (5, 2, 1, 3)


METHODS = {
    "map": {},
    "mc_dropout": {"n_predict": 5},
    "mean_field_vi": {"estimator": "weights", "n_predict": 3},
    "adversarial_training": {"train_eps": 0.1},
    "ara_training": {"chains": 2, "train_eps": 0.1},
    "sgld": {"chains": 2, "step_size": 1e-4, "burn_in": 1, "thinning": 1},
    "sgld_r": {"chains": 2, "step_size": 1e-4, "burn_in": 1, "thinning": 1},
    "deep_ensemble": {"members": 2},
}


@pytest.mark.parametrize("method", METHODS)
def test_every_network_inference_trains_and_is_attacked(method, tmp_path):
    problem = images(dtype=torch.float32)
    problem.attacker = component("attacker", "fgsm")
    pieces = (
        component("inference", method, **METHODS[method]),
        cnn(dropout=0.2 if method == "mc_dropout" else 0.0),
    )
    state, rng = train(*pieces, problem, 3)
    again, _ = train_and_resume(*pieces, problem, 3, 2, tmp_path)
    assert_close(tensors(state), tensors(again), rtol=0, atol=0)
    victim = Attacked(pieces[0].posterior(state), problem.bounds)
    x = problem.test.x
    y = problem.test.y
    old_objective = victim.answer(x, y, rng.at("evaluation", 0)).objective.mean()
    attacked = component("attacker", "pgd", steps=5, step_size=0.5, stop_when_broken=False).perturb(
        victim, x, y, rng, 0.2
    )
    assert victim.answer(attacked, y, rng.at("evaluation", 0)).objective.mean() < old_objective
    assert (attacked - x).abs().max() <= 0.2 + 1e-6


def test_local_noise_is_refused_where_pixels_share_their_weights():
    with pytest.raises(ConfigMismatchError, match=r"inference\.estimator: .* use weights"):
        train(component("inference", "mean_field_vi"), cnn(), images(), 0)


def test_invalid_input_is_refused_in_one_line():
    with pytest.raises(ConfigMismatchError, match=r"model=cnn: .* small .* images; .* model=mlp"):
        cnn().build(classes(), Streams(0))
    with pytest.raises(
        ConfigMismatchError,
        match=r"model\.channels: 6 × 5 pixels .* 3 poolings; use at most 2",
    ):
        cnn(channels=[1, 1, 1]).build(images(), Streams(0))
    with pytest.raises(ValueError, match=r"kernel: .* not 4; use 5"):
        cnn(kernel=4)
