"""Weight files of small networks, and the models that load them."""

import itertools

import torch
from safetensors.torch import save_file
from support.runs.configured import component
from support.small.small_problems import classes
from torch import nn
from torch.testing import assert_close

from runner.execution.rng import Streams

SMALL = {"name": "mlp", "widths": [7]}


def mlp(*sizes, seed=0):
    torch.manual_seed(seed)
    layers = []
    for inside, out in itertools.pairwise(sizes):
        layers += [nn.Linear(inside, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def save_weights(folder, net, name="w.safetensors"):
    tensors = net.state_dict() if isinstance(net, nn.Module) else net
    save_file(tensors, folder / name) if name.endswith(".safetensors") else torch.save(
        tensors, folder / name
    )
    return str(folder / name)


def rename_layers(net, names):
    """The tensors of a network, with its layers renamed."""
    tensors = net.state_dict()
    kinds = ("weight", "bias")
    return {
        f"{new}.{kind}": tensors[f"{old}.{kind}"] for new, old in names.items() for kind in kinds
    }


def model(path, network=SMALL, **keys):
    given = {key: value for key, value in network.items() if key != "name"}
    part = component("model", network["name"], **given)
    return component("model", "state_dict", path=path, network=part, **keys)


def build_from_file(problem, path, network=SMALL, **keys):
    return model(path, network, **keys).build(problem, Streams(0))


def check_function(net, path, network=SMALL, **keys):
    """Assert that a network with the weights of a file computes the same as ``net``."""
    x = classes().test.x
    assert_close(build_from_file(classes(), path, network, **keys)(x)[:, 0], net(x))
