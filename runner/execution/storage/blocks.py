"""Row blocks: rows of a state's traces stored permanently on disk, next to checkpoints.

A checkpoint contains the rows of its traces that are not in a block yet.  Once these reach
``BLOCK_BYTES`` bytes they are written as a block, before the checkpoint that refers to it, and
later checkpoints do not contain them.  A checkpoint refers only to the newest block, which refers
to the previous one, each with the checksum of the file, so that verification covers all blocks.
Over T rows this writes O(T) bytes (each row once, and at most ``BLOCK_BYTES`` per checkpoint, which
costs no more than flushing it) in files of at least ``BLOCK_BYTES`` bytes, which need not be
merged.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from runner.disk.atomic import write_bytes
from runner.execution.storage.packing import Tensors

BLOCK_BYTES = 2**20  # bytes
PREFIX = "block-"


class BlockFile(NamedTuple):
    """File of a block and its checksum."""

    file: str
    sha256: str


class RowBlocks:
    """Blocks of one replicate, in row order."""

    def __init__(self) -> None:
        self.written: list[BlockFile] = []
        # total number of rows of each trace, by its path in the state
        self.rows: Counter[str] = Counter()

    @property
    def newest(self) -> BlockFile | None:
        return self.written[-1] if self.written else None

    def rest(self, traces: Mapping[str, Tensor], folder: Path, name: str) -> Tensors:
        """Rows for the checkpoint: the rows of each trace [N, …] that are not in a block.

        If they reach ``BLOCK_BYTES`` bytes, they are written as a block of this name instead.
        """
        rest = {
            trace: rows[self.rows[trace] :].cpu()
            for trace, rows in traces.items()
            if len(rows) > self.rows[trace]
        }
        if sum(rows.nbytes for rows in rest.values()) < BLOCK_BYTES:
            return rest
        # a single entry, because the order of several, and so the checksum, would vary
        content = save(rest, {"before": json.dumps(self.newest)})
        write_bytes(folder / name, content)
        self._add(BlockFile(name, hashlib.sha256(content).hexdigest()), rest)
        return {}

    def _add(self, reference: BlockFile, rows: Mapping[str, Tensor]) -> None:
        self.written.append(reference)
        self.rows.update({trace: len(trace_rows) for trace, trace_rows in rows.items()})

    def sweep(self, folder: Path, of: str) -> None:
        """Delete obsolete blocks.

        Unlisted blocks of replicate ``of`` were left by a process that was killed before it wrote
        their checkpoint.  They are obsolete, like blocks of replicates without a checkpoint.
        """
        files = {reference.file for reference in self.written}
        replicates = {sidecar.name.split("-")[0] for sidecar in folder.glob("r*.json")}
        for file in folder.glob(f"{PREFIX}*.safetensors"):
            replicate = file.name.split("-")[1]
            if replicate not in replicates or (replicate == of and file.name not in files):
                file.unlink()

    @classmethod
    def read(cls, folder: Path, newest: BlockFile | None) -> tuple[RowBlocks, Tensors]:
        """Newest block with all earlier ones, and their rows [N, …] of each trace.

        Raises:
            ValueError, SafetensorError: a block is damaged or missing.
        """
        chain: list[tuple[BlockFile, Tensors]] = []
        while newest is not None:
            file = folder / Path(newest.file).name
            try:
                content = file.read_bytes()
            except OSError as error:
                raise ValueError(f"{file.name}: {error.strerror}") from None
            if hashlib.sha256(content).hexdigest() != newest.sha256:
                raise ValueError(f"{file.name}: checksum mismatch")
            with safe_open(file, "pt") as opened:
                chain.append((newest, {key: opened.get_tensor(key) for key in opened.keys()}))  # noqa: SIM118 (not a dict)
                previous = json.loads(opened.metadata()["before"])
            newest = BlockFile(*previous) if previous else None
        blocks = cls()
        parts = dict[str, list[Tensor]]()
        for reference, rows in reversed(chain):
            blocks._add(reference, rows)
            for trace, values in rows.items():
                parts.setdefault(trace, []).append(values)
        return blocks, {path: torch.cat(values) for path, values in parts.items()}
