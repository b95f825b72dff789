"""Calls of a module of the user: with parameters from outside, and with a random stream of the
run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from components.maths.exponential.global_stream import keep_global_streams


def strip_parameters(module: nn.Module) -> nn.Module:
    """The module with empty places for its parameters, which are given to it when it is called."""
    bare = copy.deepcopy(module)
    for layer in bare.modules():
        layer._load_state_dict_pre_hooks.clear()  # that of spectral_norm reads the parameters
        for name in layer._parameters:
            layer._parameters[name] = None
    return bare


def tied_names(module: nn.Module) -> dict[str, str]:
    """The name of each parameter in θ: tied ones have the name of the first of them."""
    named = dict(module.named_parameters(remove_duplicate=False))
    first: dict[int, str] = {}
    return {name: first.setdefault(id(p), name) for name, p in named.items()}


@contextmanager
def forgetting(module: nn.Module) -> Iterator[None]:
    """Attributes that its layers set in a call (features, weights of a recurrent layer) are
    afterwards what they were before, so that no graph is kept; buffers keep what was written into
    them."""
    before = [(layer, dict(layer.__dict__)) for layer in module.modules()]
    try:
        yield
    finally:
        for layer, attributes in before:
            layer.__dict__.clear()
            layer.__dict__.update(attributes)


@contextmanager
def use_generator(generator: torch.Generator | None) -> Iterator[None]:
    """Make draws of layers from PyTorch's global stream a function of a stream of the run.

    The global stream is left unchanged.
    """
    if generator is None:
        yield
        return
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with keep_global_streams(generator.device):
        torch.manual_seed(seed)
        yield
