"""Checkpoints: one safetensors file and one JSON sidecar with its checksum; never pickle.

A file is written under a temporary name, flushed and renamed; a checkpoint exists once
its sidecar, written last, exists.  The last two are kept, so that a damaged one falls
back to the one before.  A sidecar holds the checksum of the tensors and one of its own
other content.
Data that only grow (draws) are in ``blocks`` next to them, to which both may refer.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from components.contracts.states import PLACED, REBUILT, InPlaceLoadable
from components.contracts.traces import Trace
from runner.disk.atomic import make_folder, write_bytes, write_text
from runner.disk.plain_file import parse_json
from runner.execution.blocks import PREFIX, BlockFile, RowBlocks

KEPT = 2
CPU = torch.device("cpu")
# all that a checkpoint without a checksum has


class CorruptCheckpointError(Exception):
    """The bytes of a checkpoint differ from the bytes that were written."""


def pack(value: Any, tensors: dict[str, Tensor | Trace], path: str = "state") -> Any:
    """The JSON skeleton of a state; its tensors and traces go to ``tensors``.

    Raises:
        TypeError: the state holds something that is not a tensor, number, string, container,
            module or optimizer.
    """
    if isinstance(value, Tensor):
        tensors[path] = value.detach().to("cpu").contiguous().clone()
        return {"t" if value.device.type == "cpu" else "g": path}
    if isinstance(value, Trace):
        tensors[path] = value
        return {"r": path}
    if value is None or isinstance(value, bool | int | str):
        return {"v": value}
    if isinstance(value, float):
        return {"f": value.hex()}  # JSON's decimal floats would do, but NaN and infinity would not
    if isinstance(value, dict):
        return {
            "d": [[pack(k, tensors, ""), pack(v, tensors, f"{path}.{k}")] for k, v in value.items()]
        }
    if type(value) in (list, tuple):
        kind = "l" if isinstance(value, list) else "u"
        return {kind: [pack(v, tensors, f"{path}.{i}") for i, v in enumerate(value)]}
    if _is_dataclass_instance(value):
        return {
            "c": [
                [f.name, pack(getattr(value, f.name), tensors, f"{path}.{f.name}")]
                for f in _stored_fields(value)
            ]
        }
    if isinstance(value, InPlaceLoadable):
        return {"s": pack(dict(value.state_dict()), tensors, path)}
    raise TypeError(f"{path}: a {type(value).__name__} cannot be kept in a checkpoint")


def _stored_fields(value: Any) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(value) if REBUILT not in f.metadata]


def _is_dataclass_instance(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def unpack(
    skeleton: Any, tensors: dict[str, Tensor], template: Any, device: torch.device = CPU
) -> Any:
    """The inverse of ``pack``; modules and optimizers of ``template`` (a fresh state) are loaded in
    place.

    A tensor goes to where the fresh state has it; one that it has not yet, and that lay on an
    accelerator or is of a field that is ``placed``, to ``device``."""
    ((kind, content),) = skeleton.items()
    if kind == "r":
        return Trace(tensors.get(content))  # missing: it had no row
    if kind in "tg":
        where = template.device if isinstance(template, Tensor) else device if kind == "g" else CPU
        return tensors[content].to(where)
    if kind == "v":
        return content
    if kind == "f":
        return float.fromhex(content)
    if kind == "d":
        return _unpack_dict(content, tensors, template, device)
    if kind in "lu":
        items = _unpack_items(content, tensors, template, device)
        return items if kind == "l" else tuple(items)
    if kind == "c":
        return _to_dataclass(dict(content), tensors, template, device)
    template.load_state_dict(unpack(content, tensors, None, device))
    return template


def _unpack_dict(
    content: Any, tensors: dict[str, Tensor], template: Any, device: torch.device
) -> dict[Any, Any]:
    mapping = template if isinstance(template, dict) else {}
    pairs = [(unpack(k, tensors, None), v) for k, v in content]
    if not isinstance(mapping, defaultdict) or mapping.default_factory is None:
        return {k: unpack(v, tensors, mapping.get(k), device) for k, v in pairs}
    return defaultdict(
        mapping.default_factory,
        {k: unpack(v, tensors, mapping.default_factory(), device) for k, v in pairs},
    )


def _unpack_items(
    content: Any, tensors: dict[str, Tensor], template: Any, device: torch.device
) -> list[Any]:
    like = template if isinstance(template, list | tuple) else []
    # A list that grew since the fresh state was made takes its last element as the pattern for the
    # rest.
    return [
        unpack(v, tensors, like[min(i, len(like) - 1)] if like else None, device)
        for i, v in enumerate(content)
    ]


def _placed(skeleton: Any) -> Any:
    """The skeleton of a value whose tensors all lay on an accelerator."""
    if isinstance(skeleton, list):
        return [_placed(part) for part in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    return {"g" if kind == "t" else kind: _placed(part) for kind, part in skeleton.items()}


def _to_dataclass(
    parts: dict[str, Any], tensors: dict[str, Tensor], template: Any, device: torch.device
) -> Any:
    """A dataclass from its stored parts; fields that a checkpoint leaves out stay as the fresh state
    has them."""
    values = {}
    for spec in (f for f in _stored_fields(template) if f.init):
        name, fresh = spec.name, vars(template)[spec.name]
        if name in parts:
            part = _placed(parts[name]) if PLACED in spec.metadata else parts[name]
            values[name] = unpack(part, tensors, fresh, device)
    return dataclasses.replace(template, **values)


@dataclasses.dataclass(frozen=True)
class StateCopy:
    """Copy of the state after a step.

    Later steps do not change it, so that it can be written while they run.
    """

    facts: dict[str, Any]  # {step, replicate, signature, …}
    skeleton: dict[str, Any]
    tensors: dict[str, Tensor]  # copies
    traces: dict[str, Tensor]  # rows so far [N, …], N > 0


def snapshot(state: Any, streams: dict[str, Tensor], facts: dict[str, Any]) -> StateCopy:
    """Content of a checkpoint of a state and of random streams.

    Raises:
        TypeError: the state holds values that cannot be stored.
    """
    leaves: dict[str, Tensor | Trace] = {}
    skeleton = {"state": pack(state, leaves), "streams": pack(streams, leaves, "streams")}
    tensors = {name: value for name, value in leaves.items() if isinstance(value, Tensor)}
    traces = {
        name: value.rows
        for name, value in leaves.items()
        if isinstance(value, Trace) and len(value)
    }
    return StateCopy(facts, skeleton, tensors, traces)


def save_checkpoint(folder: Path, taken: StateCopy, blocks: RowBlocks | None = None) -> Path:
    """Writes a checkpoint; keeps the newest ``KEPT``.

    ``blocks`` are those that hold rows of the state's traces, and take more; None: there are none
    yet."""
    make_folder(folder)
    blocks = RowBlocks() if blocks is None else blocks
    # Metadata is left to the sidecar: it is JSON, readable without safetensors.
    facts = taken.facts
    stem = _stem(taken.facts)
    rest = blocks.rest(taken.traces, folder, f"{PREFIX}{stem}.safetensors")
    content = save(taken.tensors | rest)
    path = folder / f"{stem}.safetensors"
    write_bytes(path, content)
    checksum = hashlib.sha256(content).hexdigest()
    sidecar = {**facts, "sha256": checksum, "skeleton": taken.skeleton, "block": blocks.newest}
    write_text(
        folder / f"{stem}.json", json.dumps({**sidecar, "sidecar_sha256": _checksum(sidecar)})
    )
    _remove(sorted(folder.glob("r*.json"))[:-KEPT])
    blocks.sweep(folder, f"r{facts['replicate']:04d}")
    return path


def _remove(sidecars: list[Path]) -> None:
    for path in sidecars:
        path.unlink()
        path.with_suffix(".safetensors").unlink(missing_ok=True)


def remove_later_checkpoints(folder: Path, facts: dict[str, Any]) -> None:
    """Leaves what was there when the checkpoint that a run goes on from was the newest (no facts:
    none is): later ones, which are damaged, would be taken for the newest again, and whoever was
    killed may have left a part of one."""
    stem = _stem(facts) if facts else ""
    _remove([path for path in sorted(folder.glob("r*.json")) if path.stem > stem])
    _remove(sorted(folder.glob("r*.json"))[:-KEPT])
    for path in folder.glob("r*.safetensors"):
        if not path.with_suffix(".json").exists():
            path.unlink()
    (facts["blocks"] if facts else RowBlocks()).sweep(folder, stem[:5])


def _checksum(sidecar: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(sidecar, sort_keys=True).encode()).hexdigest()


def _facts(sidecar: Path) -> dict[str, Any]:
    """Content of a sidecar, after verifying that it is unchanged since it was written.

    Raises:
        ValueError, KeyError, TypeError: it has changed.
    """
    facts: dict[str, Any] = parse_json(sidecar.read_bytes())
    if facts.pop("sidecar_sha256", None) != _checksum(facts):
        raise ValueError("its checksum is not the one written with it")
    if sidecar.stem != _stem(facts):
        raise ValueError("it says another step than its name")
    return facts


def _stem(facts: dict[str, Any]) -> str:
    return f"r{facts['replicate']:04d}-s{facts['step']:09d}"


def _read(sidecar: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The facts, the blocks that they refer to among them, and all tensors."""
    file = sidecar
    try:
        facts = _facts(sidecar)
        file = sidecar.with_suffix(".safetensors")
        if hashlib.sha256(file.read_bytes()).hexdigest() != facts["sha256"]:
            raise ValueError("its checksum is not the one written with it")
        with safe_open(file, "pt") as opened:
            # Cloned: tensors read in place have any address, and BLAS rounds differently for
            # unaligned memory.
            tensors = {key: opened.get_tensor(key).clone() for key in opened.keys()}  # noqa: SIM118 (not a dict)
        newest = facts["block"]
        facts["blocks"], earlier = RowBlocks.read(
            sidecar.parent, BlockFile(*newest) if newest else None
        )
        return facts, tensors | {
            name: torch.cat([rows, tensors.get(name, rows[:0])]) for name, rows in earlier.items()
        }
    except OSError as error:
        raise CorruptCheckpointError(f"{file.name}: {error.strerror}") from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        SafetensorError,
    ) as error:
        raise CorruptCheckpointError(f"{file.name}: damaged ({error})") from None


def load_newest(
    folder: Path, signature: str
) -> tuple[dict[str, Any], dict[str, Tensor], list[str]] | None:
    """The newest checkpoint that is whole: (facts, tensors, complaints about newer ones that are
    not)."""
    complaints: list[str] = []
    for sidecar in sorted(folder.glob("r*.json"), reverse=True):
        try:
            facts, tensors = _read(sidecar)
        except CorruptCheckpointError as error:
            complaints.append(str(error))
            continue
        if facts["signature"] == signature:
            return facts, tensors, complaints
    return ({}, {}, complaints) if complaints else None


def restore(
    facts: dict[str, Any], tensors: dict[str, Tensor], template: Any, device: torch.device = CPU
) -> tuple[Any, dict[str, Tensor]]:
    """(state, streams) of a checkpoint, filled into a fresh state on any device."""
    skeleton = facts["skeleton"]
    return unpack(skeleton["state"], tensors, template, device), unpack(
        skeleton["streams"], tensors, None
    )
