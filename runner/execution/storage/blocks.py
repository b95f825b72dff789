"""RowBlocks: rows of a state's traces that are permanently on disk, next to checkpoints.

A checkpoint holds the rows of its traces that are in no block yet.  Once these are
``BLOCK_BYTES`` bytes they are written as a block, before the checkpoint that refers to it, and
no later checkpoint holds them again.  A checkpoint refers only to the newest block,
which names the previous one, each with the checksum of the file: trusting one requires
having checked all.  Over T rows that writes O(T) bytes (each row once, and at most
``BLOCK_BYTES`` a checkpoint, which costs no more than flushing it does) in files of at least
``BLOCK_BYTES`` bytes, so that there is no need to merge them.
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

BLOCK_BYTES = 2**20  # bytes
PREFIX = "block-"


class BlockFile(NamedTuple):
    """A block's file and the checksum of all its bytes."""

    file: str
    sha256: str


class RowBlocks:
    """Blocks of one replicate, in the order of their rows."""

    def __init__(self) -> None:
        self.written: list[BlockFile] = []
        # in all of them, for each trace by its place in the state
        self.rows: Counter[str] = Counter()

    @property
    def newest(self) -> BlockFile | None:
        return self.written[-1] if self.written else None

    def rest(self, traces: Mapping[str, Tensor], folder: Path, name: str) -> dict[str, Tensor]:
        """Rows that a checkpoint has to hold itself.

        These are the rows of each trace, from all its rows [N, …], that are in no block.  If
        they are ``BLOCK_BYTES`` bytes, they become the block of this name and nothing is left.
        """
        rest = {
            trace: rows[self.rows[trace] :].cpu()
            for trace, rows in traces.items()
            if len(rows) > self.rows[trace]
        }
        if sum(rows.nbytes for rows in rest.values()) < BLOCK_BYTES:
            return rest
        # One entry: the order of several would vary, and with it the checksum.
        content = save(rest, {"before": json.dumps(self.newest)})
        write_bytes(folder / name, content)
        self._add(BlockFile(name, hashlib.sha256(content).hexdigest()), rest)
        return {}

    def _add(self, reference: BlockFile, rows: Mapping[str, Tensor]) -> None:
        self.written.append(reference)
        self.rows.update({trace: len(trace_rows) for trace, trace_rows in rows.items()})

    def sweep(self, folder: Path, of: str) -> None:
        """Delete obsolete blocks.

        These are blocks of replicate ``of`` that are not listed here, left by a run that was
        killed before their checkpoint was written, and blocks of replicates that no longer
        have a checkpoint.
        """
        files = {reference.file for reference in self.written}
        replicates = {sidecar.name.split("-")[0] for sidecar in folder.glob("r*.json")}
        for file in folder.glob(f"{PREFIX}*.safetensors"):
            replicate = file.name.split("-")[1]
            if replicate not in replicates or (replicate == of and file.name not in files):
                file.unlink()

    @classmethod
    def read(cls, folder: Path, newest: BlockFile | None) -> tuple[RowBlocks, dict[str, Tensor]]:
        """The newest block with all before it, and the rows [N, …] of each trace that they hold.

        Raises:
            ValueError, SafetensorError: one is damaged or not there.
        """
        chain: list[tuple[BlockFile, dict[str, Tensor]]] = []
        while newest is not None:
            file = folder / Path(newest.file).name
            try:
                content = file.read_bytes()
            except OSError as error:
                raise ValueError(f"{file.name}: {error.strerror}") from None
            if hashlib.sha256(content).hexdigest() != newest.sha256:
                raise ValueError(f"{file.name}: its checksum is not the one written with it")
            with safe_open(file, "pt") as opened:
                chain.append((newest, {at: opened.get_tensor(at) for at in opened.keys()}))  # noqa: SIM118 (not a dict)
                before = json.loads(opened.metadata()["before"])
            newest = BlockFile(*before) if before else None
        blocks = cls()
        parts = dict[str, list[Tensor]]()
        for reference, rows in reversed(chain):
            blocks._add(reference, rows)
            for trace, values in rows.items():
                parts.setdefault(trace, []).append(values)
        return blocks, {at: torch.cat(of) for at, of in parts.items()}
