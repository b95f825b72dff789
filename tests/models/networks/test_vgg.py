"""VGG: the layers of ``torch.nn`` with the same weights, printed shapes, running statistics and
errors."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import build_model, generator
from support.small.small_nets import SMALL_VGG, images
from support.small.small_problems import classes
from torch import nn
from torch.distributions import Normal
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.models.networks.vgg import BLOCKS
from runner.execution.rng import Streams


def by_torch(network):
    """The same net of ``nn.Conv2d``, ``nn.BatchNorm2d``, ``nn.MaxPool2d`` and ``nn.Linear``."""
    layers = []
    for layer, kernel in enumerate(network.kernels):
        out, inside = kernel.shape[:2]
        convolution = nn.Conv2d(inside, out, 3, padding=1, bias=False)
        norm = nn.BatchNorm2d(out)
        convolution.weight.data = kernel.data
        norm.weight.data = network.gains[layer].data
        norm.bias.data = network.shifts[layer].data
        layers += [convolution, norm, nn.ReLU()]
        if layer in network.ends:
            layers.append(nn.MaxPool2d(2))
    head = nn.Linear(network.head[0].shape[1], network.head[0].shape[0])
    head.weight.data = network.head[0].data
    head.bias.data = network.head[1].data
    return nn.Sequential(*layers, nn.Flatten(), head).double()


def test_network_equals_torch_in_training_and_prediction():
    problem = images()
    network = SMALL_VGG.build(problem, Streams(0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.1 * torch.randn(
                parameter.shape, generator=generator(1), dtype=parameter.dtype
            )
    other = by_torch(network)
    mean = problem.train.x.mean()
    std = problem.train.x.std(correction=0)
    for x in problem.train.x.split(8):
        assert_close(network(x)[:, 0], other(((x - mean) / std).view(-1, 1, 8, 8)))
    norms = [layer for layer in other if isinstance(layer, nn.BatchNorm2d)]
    expected = [part for norm in norms for part in (norm.running_mean, norm.running_var)]
    for mine, its in zip(network.statistics(), expected, strict=True):
        assert_close(mine, its)
    network.train(False)
    other.eval()
    x = problem.test.x
    assert_close(network(x)[:, 0], other(((x - mean) / std).view(-1, 1, 8, 8)))
    assert_close(network(x[:3]), network(x)[:3])  # rows are independent


def test_vgg_19_has_the_printed_blocks_and_weights():
    problem = replace(
        classes(n=1, n_inputs=3072, n_classes=10, dtype=torch.float32), image_shape=(3, 32, 32)
    )
    network = build_model("vgg", problem)
    channels = [64] * 2 + [128] * 2 + [256] * 4 + [512] * 8
    assert [kernel.shape[0] for kernel in network.kernels] == channels
    assert [kernel.shape[1] for kernel in network.kernels] == [3, *channels[:-1]]
    assert sorted(network.ends) == [1, 3, 7, 11, 15]
    counted = (
        sum(9 * i * o + 2 * o for i, o in zip([3, *channels[:-1]], channels, strict=True))
        + 512 * 10
        + 10
    )
    assert sum(parameter.numel() for parameter in network.parameters()) == counted == 20_035_018
    assert {depth: sum(blocks) + 3 for depth, blocks in BLOCKS.items() if depth > 7} == {
        d: d for d in (11, 13, 16, 19)
    }
    network.train(False)
    with torch.no_grad():
        assert network(problem.test.x).shape == (1, 1, 10)


def test_weights_start_with_he_variance_from_the_runs_stream():
    state = torch.random.get_rng_state()
    network = build_model("vgg", images(), depth=7, width=16)
    assert torch.equal(state, torch.random.get_rng_state())
    again = build_model("vgg", images(), depth=7, width=16)
    assert_close(list(network.parameters()), list(again.parameters()), rtol=0, atol=0)
    kernel = network.kernels[3]  # 32 channels of 32
    assert kernel.detach().var() == pytest.approx(2 / (9 * 32), rel=0.05)


def test_penalty_is_the_negative_log_prior():
    network = build_model("vgg", images(), depth=7, width=2, prior_std=0.5)
    normal = Normal(0.0, 0.5)
    expected = -sum(normal.log_prob(p).sum() for p in network.parameters())
    constant = -sum(normal.log_prob(torch.zeros_like(p)).sum() for p in network.parameters())
    assert_close(network.penalty(), expected - constant)


def test_invalid_inputs_are_refused_in_one_line():
    with pytest.raises(ConfigMismatchError, match=r"small .*; choose a dataset of images"):
        SMALL_VGG.build(classes(), Streams(0))
