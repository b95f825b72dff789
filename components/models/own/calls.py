"""Calls of a user's module with external parameters and a random stream of the run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from components.maths.exponential.global_stream import keep_global_streams


def strip_parameters(module: nn.Module) -> nn.Module:
    """The module without parameters, which are passed in when it is called."""
    bare = copy.deepcopy(module)
    for layer in bare.modules():
        layer._load_state_dict_pre_hooks.clear()  # the hook of spectral_norm reads the parameters
        for name in layer._parameters:
            layer._parameters[name] = None
    return bare


def tied_names(module: nn.Module) -> dict[str, str]:
    """The name of each parameter in θ: tied parameters have the name of the first one."""
    named = dict(module.named_parameters(remove_duplicate=False))
    first: dict[int, str] = {}
    return {name: first.setdefault(id(p), name) for name, p in named.items()}


@contextmanager
def forgetting(module: nn.Module) -> Iterator[None]:
    """Context that restores attributes set by layers during a call (features, weights of a
    recurrent layer), so that graphs are not kept; buffers keep their new values."""
    saved = [(layer, dict(layer.__dict__)) for layer in module.modules()]
    try:
        yield
    finally:
        for layer, attributes in saved:
            layer.__dict__.clear()
            layer.__dict__.update(attributes)


@contextmanager
def use_generator(generator: torch.Generator | None) -> Iterator[None]:
    """Seed draws from PyTorch's global stream by a stream of the run.

    The global stream is restored afterwards.
    """
    if generator is None:
        yield
        return
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with keep_global_streams(generator.device):
        torch.manual_seed(seed)
        yield
