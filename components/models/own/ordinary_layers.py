"""Conversion of weights of PyTorch's layers, such as ``fc1.weight`` and ``fc1.bias``, to the flat θ
of a network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torch import Tensor

from components.errors import ConfigMismatchError
from components.models.networks.feed_forward import FeedForward
from components.models.own.weights_file import expand_binary_head, misfits

Shape = tuple[int, ...]


def sort_parameters(
    network: FeedForward,
    tensors: Mapping[str, Tensor],
    layers: Sequence[str] | None,
    where: str,
    binary: bool,
) -> dict[str, Tensor]:
    """Weights and biases of the layers of ``network``, in the order of its θ.

    Weights are [out, in] or [out, in, k, k], biases [out].

    Args:
        layers: prefixes of their names, in order; None if layers are identified by their shapes,
            and layers of the same shape by the numbers in their names.
        binary: the last layer may have one output per label, its log odds.

    Raises:
        ConfigMismatchError: tensors are missing, unused or of another shape, or the order of layers
            is ambiguous.
    """
    shapes = _expected_shapes(network)
    weight_names = [
        name.removesuffix(".weight")
        for name, value in tensors.items()
        if name.endswith(".weight") and value.ndim > 1
    ]
    if layers is None:
        layers = _in_order(
            shapes, {name: tuple(tensors[f"{name}.weight"].shape) for name in weight_names}, where
        )
    if len(layers) != len(shapes):
        shape_text = " → ".join(
            str(list(tensors[f"{name}.weight"].shape))
            for name in sorted(weight_names, key=_natural)
        )
        raise ConfigMismatchError(
            f"{where}: {len(layers)} layers of weights ({shape_text}), but the network has "
            f"{len(shapes)} ({' → '.join(str(list(shape)) for shape in shapes)}); set "
            "model.network's widths or channels"
        )
    expected: dict[str, Shape] = {}
    for name, shape in zip(layers, shapes, strict=True):
        expected |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    if binary:
        head = dict(list(expected.items())[-2:])
        tensors = expand_binary_head(head, tensors)
    if message := misfits(expected, tensors):
        raise ConfigMismatchError(
            f"{where}: {message}; set model.network to the saved one, choose its file, or list its classes in dataset.classes"
        )
    return {name: tensors[name].to(network.theta) for name in expected}


def _expected_shapes(network: FeedForward) -> list[Shape]:
    """Shapes of the weights in PyTorch's layout, layer by layer."""
    if network.front is None:
        return list(network.shapes)
    k = network.front.kernel
    convolutions: list[Shape] = [
        (out, inside // k**2, k, k) for out, inside in network.shapes[: network.first]
    ]
    return [*convolutions, *network.shapes[network.first :]]


def _in_order(shapes: list[Shape], there: dict[str, Shape], where: str) -> list[str]:
    """Layer names in the order of the network's layers.

    Layers with other shapes come last and are reported by the caller.
    """
    remaining = sorted(there, key=_natural)
    numbered = {re.sub(r"\d+", "#", name) for name in remaining}
    # fc1, fc2, fc3: numbers give the order, and a mismatch can be reported by its index
    if len(numbered) == 1:
        return remaining
    order: list[str] = []
    for shape in shapes:
        same = [name for name in remaining if there[name] == shape]
        if len({re.sub(r"\d+", "#", name) for name in same}) > 1 and shapes.count(shape) > 1:
            raise ConfigMismatchError(
                f"{where}: {' and '.join(same[:2])} have the same shape and ambiguous names; list "
                "the layers in order, model.layers=[…]"
            )
        if same:
            order.append(same[0])
            remaining.remove(same[0])
    return [*order, *remaining]


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Sort key of names with 10 after 9."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name)]
