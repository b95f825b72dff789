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
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from components.contracts.traces import Trace
from runner.disk.atomic import make_folder, write_bytes, write_text
from runner.disk.plain_file import parse_json
from runner.execution.storage.blocks import PREFIX, BlockFile, RowBlocks
from runner.execution.storage.packing import CPU, pack, unpack
from runner.record.facts import Facts

KEPT = 2


class CorruptCheckpointError(Exception):
    """The bytes of a checkpoint differ from the bytes that were written."""


@dataclasses.dataclass(frozen=True)
class StateCopy:
    """Copy of the state after a step.

    Later steps do not change it, so that it can be written while they run.
    """

    facts: Facts  # {step, replicate, signature, …}
    skeleton: Facts
    tensors: dict[str, Tensor]  # copies
    traces: dict[str, Tensor]  # rows so far [N, …], N > 0


def snapshot(state: Any, streams: dict[str, Tensor], facts: Facts) -> StateCopy:
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


def remove_later_checkpoints(folder: Path, facts: Facts) -> None:
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


def _checksum(sidecar: Facts) -> str:
    return hashlib.sha256(json.dumps(sidecar, sort_keys=True).encode()).hexdigest()


def _stem(facts: Facts) -> str:
    return f"r{facts['replicate']:04d}-s{facts['step']:09d}"


def _read(sidecar: Path) -> tuple[Facts, dict[str, Tensor]]:
    """The facts, the blocks that they refer to among them, and all tensors."""
    file = sidecar
    try:
        facts: Facts = parse_json(sidecar.read_bytes())
        if facts.pop("sidecar_sha256", None) != _checksum(facts):
            raise ValueError("its checksum is not the one written with it")
        if sidecar.stem != _stem(facts):
            raise ValueError("it says another step than its name")
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


def load_newest(folder: Path, signature: str) -> tuple[Facts, dict[str, Tensor], list[str]]:
    """The newest checkpoint that is whole: (facts, tensors, complaints about newer ones that are
    not); no facts if there is none."""
    complaints: list[str] = []
    for sidecar in sorted(folder.glob("r*.json"), reverse=True):
        try:
            facts, tensors = _read(sidecar)
        except CorruptCheckpointError as error:
            complaints.append(str(error))
            continue
        if facts["signature"] == signature:
            return facts, tensors, complaints
    return {}, {}, complaints


def restore(
    facts: Facts, tensors: dict[str, Tensor], template: Any, device: torch.device = CPU
) -> tuple[Any, dict[str, Tensor]]:
    """(state, streams) of a checkpoint, filled into a fresh state on any device."""
    skeleton = facts["skeleton"]
    return unpack(skeleton["state"], tensors, template, device), unpack(
        skeleton["streams"], tensors, None
    )
