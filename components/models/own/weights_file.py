"""Tensors from a user's file, matched to a network; errors name all mismatches."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from components.errors import (
    ConfigMismatchError,
    DamagedFileError,
    QuestionableConfigWarning,
    list_names,
)

MOST_NAMED = 3  # tensors of each kind in an error message
# Keys under which training loops store the weights next to other entries.
WEIGHT_CONTAINER_KEYS = frozenset(
    {"state_dict", "model_state_dict", "net", "model", "network", "weights", "model_state"}
)
DEEPEST = 3  # depth of the search in nested mappings


def read_weights(path: Path, prefix: str) -> dict[str, Tensor]:
    """Tensors of a weights file with names that begin with ``prefix``, keyed by the rest.

    The file is a safetensors file or a file of ``torch.save``, from which only tensors and
    containers of them are unpickled.  If the file has other entries, the weights are under one of
    ``WEIGHT_CONTAINER_KEYS``, or the only weights; otherwise ``prefix`` selects the mapping.

    Raises:
        DamagedFileError: the file has another format.
        ConfigMismatchError: the file has other content, no such names, several sets of weights, or
            values that are not finite.
    """
    content = (
        _safetensors(path)
        if path.suffix == ".safetensors"
        else _nested_weights(_load_torch_weights(path), path, prefix)
    )
    every = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    if other := [name for name in content if name not in every]:
        raise ConfigMismatchError(
            f"model.path={path}: {other[0]} is not a tensor; save only net.state_dict()"
        )
    tensors = {
        name.removeprefix(prefix): value for name, value in every.items() if name.startswith(prefix)
    }
    if not tensors:
        raise ConfigMismatchError(
            f"model.prefix={prefix}: does not match any name in {path}; its names are {list_names(sorted(content))}"
        )
    wrong = [name for name, value in tensors.items() if not bool(torch.isfinite(value).all())]
    if wrong:
        raise ConfigMismatchError(
            f"model.path={path}: {list_names(wrong)} have values that are not finite; save the weights again"
        )
    return tensors


def _safetensors(path: Path) -> Mapping[str, object]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise _damaged_file_error(
            path, "safetensors file", error, "safetensors.torch.save_file(net.state_dict(), …)"
        ) from None


def _load_torch_weights(path: Path) -> Mapping[str, object]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # arbitrary bytes can raise any error in the unpickler
        raise _damaged_file_error(
            path, "file of tensors", error, "torch.save(net.state_dict(), …)"
        ) from None
    if not isinstance(content, Mapping) or not content:
        raise ConfigMismatchError(
            f"model.path={path}: does not contain named tensors; save net.state_dict()"
        )
    return content


def _nested_weights(found: Mapping[str, object], path: Path, prefix: str) -> Mapping[str, object]:
    """Weights under a key of a file saved by a training loop.

    A file without nested weights is returned unchanged.

    Raises:
        ConfigMismatchError: there are several sets, and neither their keys nor ``prefix`` select
            one.
    """
    groups = dict(_groups(found, ""))
    if not groups:
        return found
    if named := [key for key in groups if prefix.startswith(f"{key}.")]:
        return {f"{named[0]}.{name}": value for name, value in groups[named[0]].items()}
    likely = [key for key in groups if key in WEIGHT_CONTAINER_KEYS] or list(groups)
    if len(likely) > 1:
        ways = " or ".join(f"model.prefix={key}." for key in likely[:MOST_NAMED])
        raise ConfigMismatchError(
            f"model.path={path}: contains several sets of weights, {list_names(likely)}; choose one, {ways}"
        )
    if others := [key for key in groups if key != likely[0]]:
        warnings.warn(
            QuestionableConfigWarning(
                f"model.path={path}: contains {list_names(others)} in addition to {likely[0]}, "
                f"which is used; set model.prefix={others[0]}. to use {others[0]}"
            ),
            stacklevel=1,
        )
    return groups[likely[0]]


def _groups(found: Mapping[Any, object], key: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Nested mappings from names to tensors, with their keys joined by dots."""
    if key.count(".") >= DEEPEST or not all(
        isinstance(name, str) for name in found
    ):  # optimizers number their parameters
        return
    for name, value in found.items():
        if not isinstance(value, Mapping) or not value:
            continue
        if all(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items()):
            yield f"{key}{name}", value
        else:
            yield from _groups(value, f"{key}{name}.")


def unwrap_names(asked: Collection[str], found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors without the common prefix of their names (``module.`` of DataParallel, ``_orig_mod.``
    of torch.compile) if this gives the requested names; otherwise unchanged."""
    names = {name: name for name in found}
    while names and set(names.values()) != set(asked):
        heads = {name.partition(".")[:2] for name in names.values()}
        if len(heads) != 1 or next(iter(heads))[1] == "":
            return dict(found)
        names = {old: name.partition(".")[2] for old, name in names.items()}
    return {name: found[old] for old, name in names.items()}


def _damaged_file_error(path: Path, kind: str, error: Exception, mend: str) -> DamagedFileError:
    reason = re.sub(r"\s+", " ", str(error)).split(". ")[0].strip()[:200]
    return DamagedFileError(f"model.path={path}: not a {kind} ({reason}); write it with {mend}")


def misfits(asked: Mapping[str, tuple[int, ...]], found: Mapping[str, Tensor]) -> str:
    """Message about missing tensors, unused tensors and wrong shapes; "" if everything fits."""
    missing = [name for name in asked if name not in found]
    extra = [name for name in found if name not in asked]
    shapes = [
        f"{name} is {list(found[name].shape)} instead of {list(shape)}"
        for name, shape in asked.items()
        if name in found and tuple(found[name].shape) != shape
    ]
    problems = [
        f"lacks {list_names(missing)}" if missing else "",
        f"has {list_names(extra)}, which the network lacks" if extra else "",
        list_names(shapes),
    ]
    return "; ".join(part for part in problems if part)


def expand_binary_head(
    asked: Mapping[str, tuple[int, ...]], found: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Replace a head of log odds, one output f_t per binary label, by logits (0, f_t).

    softmax(0, f)_1 = σ(f). The head is the only layer with half of the required outputs; without
    such a layer, the tensors are unchanged.
    """
    halves = [
        name
        for name, shape in asked.items()
        if name in found
        and found[name].ndim
        and (2 * len(found[name]), *found[name].shape[1:]) == shape
    ]
    if len({name.rpartition(".")[0] for name in halves}) != 1:
        return dict(found)
    both = {
        name: torch.stack([torch.zeros_like(found[name]), found[name]], 1).flatten(0, 1)
        for name in halves
    }
    return {**found, **both}


@torch.no_grad()
def fill_network(network: nn.Module, tensors: Mapping[str, Tensor], where: str, mend: str) -> None:
    """Load the tensors into a network with the same names.

    Raises:
        ConfigMismatchError: the tensors do not match the network.
    """
    state = network.state_dict()
    tensors = unwrap_names(state, tensors)
    if message := misfits({name: tuple(value.shape) for name, value in state.items()}, tensors):
        raise ConfigMismatchError(f"{where}: {message}; {mend}")
    for name, value in state.items():
        value.copy_(tensors[name])
