"""A peer in a process of its own, asked over a pipe: it answers every line by a line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType


class PeerProcess:
    """``interpreter script arguments…``, on one thread; ended when the block ends."""

    def __init__(self, interpreter: Path, script: Path, *arguments: str):
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [str(interpreter), "-W", "ignore", str(script), *arguments],
            stdin=pipe,
            stdout=pipe,
            text=True,
            env=os.environ | one,
        )
        self.answer()  # it is ready

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer's process ended with exit code {self.process.wait()}")
        return line

    def ask(self, request: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        return self.answer()

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
