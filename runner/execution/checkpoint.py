"""Checkpoints: a safetensors file and a JSON sidecar with its checksum; never pickle.

A file is written under a temporary name, flushed and renamed; a checkpoint exists once its sidecar,
written last, exists.  The last two are kept, so that a run can fall back to the previous one if the
newest is damaged.  A sidecar has the checksum of the tensors and one of its own other content.
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
from runner.catalogue.settings import hash_values
from runner.disk.atomic import make_folder, write_bytes, write_text
from runner.disk.plain_file import parse_json
from runner.execution.storage.blocks import PREFIX, BlockFile, RowBlocks
from runner.execution.storage.packing import CPU, Tensors, pack, unpack
from runner.record.facts import Facts

KEPT = 2


class CorruptCheckpointError(Exception):
    """A checkpoint does not match its checksum."""


@dataclasses.dataclass(frozen=True)
class StateCopy:
    """Copy of the state after a step.

    Later steps do not change it, so it can be written while they run.
    """

    facts: Facts  # {step, replicate, signature, …}
    skeleton: Facts
    tensors: Tensors  # copies
    traces: Tensors  # rows so far [N, …], N > 0


def snapshot(state: Any, streams: Tensors, facts: Facts) -> StateCopy:
    """Content of a checkpoint, from a state and random streams.

    Raises:
        TypeError: the state contains values that cannot be stored.
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
    """Write a checkpoint and remove all but the ``KEPT`` newest ones.

    ``blocks`` contain earlier rows of the state's traces and receive new ones; None if there are no
    blocks yet.
    """
    make_folder(folder)
    blocks = RowBlocks() if blocks is None else blocks
    # metadata are in the sidecar only: JSON can be read without safetensors
    facts = taken.facts
    stem = _stem(taken.facts)
    rest = blocks.rest(taken.traces, folder, f"{PREFIX}{stem}.safetensors")
    content = save(taken.tensors | rest)
    path = folder / f"{stem}.safetensors"
    write_bytes(path, content)
    checksum = hashlib.sha256(content).hexdigest()
    sidecar = {**facts, "sha256": checksum, "skeleton": taken.skeleton, "block": blocks.newest}
    write_text(
        folder / f"{stem}.json", json.dumps({**sidecar, "sidecar_sha256": hash_values(sidecar)})
    )
    _remove(sorted(folder.glob("r*.json"))[:-KEPT])
    blocks.sweep(folder, f"r{facts['replicate']:04d}")
    return path


def _remove(sidecars: list[Path]) -> None:
    for path in sidecars:
        path.unlink()
        path.with_suffix(".safetensors").unlink(missing_ok=True)


def remove_later_checkpoints(folder: Path, facts: Facts) -> None:
    """Remove files newer than the checkpoint from which a run resumes, or all files without facts.

    Later checkpoints are damaged and would be read first again, and a killed process may have left
    an incomplete one."""
    stem = _stem(facts) if facts else ""
    _remove([path for path in sorted(folder.glob("r*.json")) if path.stem > stem])
    _remove(sorted(folder.glob("r*.json"))[:-KEPT])
    for path in folder.glob("r*.safetensors"):
        if not path.with_suffix(".json").exists():
            path.unlink()
    (facts["blocks"] if facts else RowBlocks()).sweep(folder, stem[:5])


def _stem(facts: Facts) -> str:
    return f"r{facts['replicate']:04d}-s{facts['step']:09d}"


def _read(sidecar: Path) -> tuple[Facts, Tensors]:
    """Facts with the blocks that they refer to, and all tensors."""
    file = sidecar
    try:
        facts: Facts = parse_json(sidecar.read_bytes())
        if facts.pop("sidecar_sha256", None) != hash_values(facts):
            raise ValueError("checksum mismatch")
        if sidecar.stem != _stem(facts):
            raise ValueError("its step differs from its file name")
        file = sidecar.with_suffix(".safetensors")
        if hashlib.sha256(file.read_bytes()).hexdigest() != facts["sha256"]:
            raise ValueError("checksum mismatch")
        with safe_open(file, "pt") as opened:
            # cloned because tensors read in place may be unaligned, and BLAS rounds differently
            # for unaligned memory
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


def load_newest(folder: Path, signature: str) -> tuple[Facts, Tensors, list[str]]:
    """Newest undamaged checkpoint: (facts, tensors, messages about newer damaged checkpoints);
    facts are empty without a checkpoint.
    """
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
    facts: Facts, tensors: Tensors, template: Any, device: torch.device = CPU
) -> tuple[Any, Tensors]:
    """Restore (state, streams) from a checkpoint into a new state on any device."""
    skeleton = facts["skeleton"]
    return unpack(skeleton["state"], tensors, template, device), unpack(
        skeleton["streams"], tensors, None
    )
