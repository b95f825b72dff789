"""Conversion of states to JSON skeletons and tensors, and back."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from components.contracts.states import NOT_CHECKPOINTED, PLACED, InPlaceLoadable
from components.contracts.traces import Trace

CPU = torch.device("cpu")
Tensors = dict[str, Tensor]  # by name


def pack(value: Any, tensors: dict[str, Tensor | Trace], path: str = "state") -> Any:
    """JSON skeleton of a state; its tensors and traces are added to ``tensors``.

    Raises:
        TypeError: a value is not a tensor, number, string, container, module or optimizer.
    """
    match value:
        case Tensor():
            tensors[path] = value.detach().to("cpu").contiguous().clone()
            return {"t" if value.device.type == "cpu" else "g": path}
        case Trace():
            tensors[path] = value
            return {"r": path}
        case None | bool() | int() | str():
            return {"v": value}
        case float():
            return {"f": value.hex()}  # JSON has neither NaN nor infinity
        case dict():
            items = value.items()
            return {
                "d": [[pack(k, tensors, ""), pack(v, tensors, f"{path}.{k}")] for k, v in items]
            }
    if type(value) in (list, tuple):
        kind = "l" if isinstance(value, list) else "u"
        return {kind: [pack(v, tensors, f"{path}.{i}") for i, v in enumerate(value)]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in _stored_fields(value)}
        return {"c": [[name, pack(v, tensors, f"{path}.{name}")] for name, v in parts.items()]}
    if isinstance(value, InPlaceLoadable):
        return {"s": pack(dict(value.state_dict()), tensors, path)}
    raise TypeError(f"{path}: type {type(value).__name__} cannot be stored in a checkpoint")


def _stored_fields(value: Any) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(value) if NOT_CHECKPOINTED not in f.metadata]


def unpack(skeleton: Any, tensors: Tensors, template: Any, device: torch.device = CPU) -> Any:
    """Inverse of ``pack``; modules and optimizers of ``template``, a new state, are loaded in place.

    A tensor is placed on the device of the same tensor in the new state.  If the new state lacks it,
    it is placed on ``device`` if it was on an accelerator or belongs to a ``placed`` field.
    """
    ((kind, content),) = skeleton.items()
    match kind:
        case "r":
            return Trace(tensors.get(content))  # missing if it had no rows
        case "t" | "g":
            default = device if kind == "g" else CPU
            place = template.device if isinstance(template, Tensor) else default
            return tensors[content].to(place)
        case "v":
            return content
        case "f":
            return float.fromhex(content)
        case "d":
            return _unpack_dict(content, tensors, template, device)
        case "l":
            return _unpack_items(content, tensors, template, device)
        case "u":
            return tuple(_unpack_items(content, tensors, template, device))
        case "c":
            return _unpack_dataclass(dict(content), tensors, template, device)
    template.load_state_dict(unpack(content, tensors, None, device))
    return template


def _unpack_dict(
    content: Any, tensors: Tensors, template: Any, device: torch.device
) -> dict[Any, Any]:
    fresh = template if isinstance(template, dict) else {}
    factory = fresh.default_factory if isinstance(fresh, defaultdict) else None
    result: dict[Any, Any] = {} if factory is None else defaultdict(factory)
    for packed_key, part in content:
        key = unpack(packed_key, tensors, None)
        pattern = fresh.get(key) if factory is None else factory()
        result[key] = unpack(part, tensors, pattern, device)
    return result


def _unpack_items(content: Any, tensors: Tensors, template: Any, device: torch.device) -> list[Any]:
    # A list that grew since the fresh state was made takes its last element as the pattern for the
    # rest.
    patterns = template if isinstance(template, list | tuple) and template else [None]
    return [
        unpack(part, tensors, patterns[min(i, len(patterns) - 1)], device)
        for i, part in enumerate(content)
    ]


def _unpack_dataclass(
    parts: dict[str, Any], tensors: Tensors, template: Any, device: torch.device
) -> Any:
    """Restore a dataclass; fields missing from the checkpoint keep the values of the new state."""
    values = {}
    for field in _stored_fields(template):
        if field.init and field.name in parts:
            part = parts[field.name]
            part = _place(part) if PLACED in field.metadata else part
            values[field.name] = unpack(part, tensors, vars(template)[field.name], device)
    return dataclasses.replace(template, **values)


def _place(skeleton: Any) -> Any:
    """Mark the skeleton of a value as placed on an accelerator."""
    if isinstance(skeleton, list):
        return [_place(part) for part in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    return {"g" if kind == "t" else kind: _place(part) for kind, part in skeleton.items()}
