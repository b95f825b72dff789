"""Layers of a user's module that behave differently in training, and their modes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.utils.parametrizations import _SpectralNorm
from torch.nn.utils.spectral_norm import SpectralNorm

from components.maths.exponential.global_stream import keep_global_streams
from components.models.own.examination import is_close

POWER_ITERATIONS = 30  # for a spectral norm of any weights; PyTorch uses 15 initially

Call = Callable[[nn.Module, Tensor], Tensor]  # a module and x [B, D] -> outputs


class TrainingLayers(NamedTuple):
    """Names of the layers of a module that behave differently in training."""

    learning: list[str]  # running statistics and power iterations, updated in training
    dropping: list[str]  # dropout, and layers that draw random numbers in training
    fault: str | None  # reason why a layer cannot be trained


@contextmanager
def modes(module: nn.Module, acting: Iterable[str]) -> Iterator[None]:
    """Prediction mode, except for the layers ``acting``."""
    module.eval()
    for name in acting:
        module.get_submodule(name).training = True
    try:
        yield
    finally:
        module.eval()


def _spectral_norm(layer: nn.Module) -> _SpectralNorm | SpectralNorm | None:
    """Power iteration of a layer: a parametrization, or a hook of ``torch.nn.utils``."""
    parts = [layer, *layer._forward_pre_hooks.values()]
    return next((part for part in parts if isinstance(part, _SpectralNorm | SpectralNorm)), None)


def _learns(layer: nn.Module) -> bool:
    return isinstance(layer, _NormBase) or _spectral_norm(layer) is not None


def converge_norms(module: nn.Module) -> nn.Module:
    """A copy with spectral norms recomputed for the weights of its next call; the module itself
    without spectral norms."""
    if not any(map(_spectral_norm, module.modules())):
        return module
    module = copy.deepcopy(module)
    for layer in module.modules():
        norm = _spectral_norm(layer)
        if norm is not None:
            norm.n_power_iterations = POWER_ITERATIONS
            layer.training = True
    return module


def find_training_layers(module: nn.Module, call: Call, x: Tensor) -> TrainingLayers:
    """Layers that the module's ``train()`` switches to training mode, with an effect.

    A custom ``train()`` may keep layers in prediction mode, such as a frozen backbone.  Other
    layers that draw random numbers (``F.dropout``, dropout of a recurrent or attention layer) are
    treated as dropout; layers that change outputs or buffers otherwise cannot be trained.
    """
    module.train()
    reached = {name: layer for name, layer in module.named_modules() if layer.training}
    module.eval()
    learning = [name for name, layer in reached.items() if _learns(layer)]
    dropping = [name for name, layer in reached.items() if isinstance(layer, _DropoutNd)]
    others = sorted(reached.keys() - {*learning, *dropping})
    effect = _effect(module, call, x, others)
    faults = [
        f"{name or 'the module itself'} ({type(reached[name]).__name__})"
        for name in others
        if effect == "other" and _effect(module, call, x, [name]) == "other"
    ]
    fault = (
        f"behaves differently in training due to {', '.join(faults[:3]) or 'several layers'}, "
        "which is not supported; use batch or instance normalisation, spectral_norm or dropout of "
        "torch.nn, or use inference=fixed"
    )
    dropping += others if effect == "random" else []
    return TrainingLayers(learning, dropping, fault if effect == "other" else None)


def _effect(
    module: nn.Module, call: Call, x: Tensor, names: list[str]
) -> Literal["none", "random", "other"]:
    """Effect of the training mode of layers: none, random outputs, or another effect."""
    results = []
    for acting, seed in (([], 0), (names, 0), (names, 1)):
        probe = copy.deepcopy(module)
        with modes(probe, acting), keep_global_streams(x.device), torch.no_grad():
            torch.manual_seed(seed)
            try:
                results.append([call(probe, x.clone()), *probe.buffers()])
            except Exception:  # outputs of another form, e.g. of auxiliary heads
                return "other"
    plain, first, again = results
    if all(map(is_close, first + again, plain + plain)):
        return "none"
    is_random = not is_close(first[0], again[0]) and all(map(is_close, first[1:], plain[1:]))
    return "random" if is_random else "other"
