"""Commands in forked processes with limits of time and memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import runner.execution.execute  # noqa: F401  what every run imports: forked processes have it already
from runner.commands import cli
from runner.terminal import printer

SECONDS = 120  # wall-clock seconds of one composition
MEMORY = 24 * 2**30  # bytes of address space in addition to those of the forking process


@dataclass
class Outcome:
    """Result of a command."""

    argv: list[str]
    code: int | None  # None if killed at the time limit
    output: str
    seconds: float
    result: dict[str, list[float]] = field(default_factory=dict)

    @property
    def is_traceback(self) -> bool:
        has_code = self.code in (0, 1, 2, None)
        return "Traceback (most recent call last)" in self.output or not has_code

    @property
    def is_broken(self) -> bool:
        """True if the command ended in a traceback, ran for too long, or warned of broadcast
        arrays."""
        return self.is_traceback or self.code is None or "Using a target size" in self.output

    @property
    def message(self) -> str:
        """Error message of the run."""
        return self.output.strip().splitlines()[-1] if self.output.strip() else ""


def run(argv: list[str], folder: Path, seconds: float = SECONDS) -> Outcome:
    """Run a command in a forked process, which inherits the imports of this one."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as written:
        child = os.fork()
        if child == 0:
            _become(argv, folder, written)
        code = _wait(child, began + seconds)
        written.seek(0)
        output = written.read()
    results = [json.loads(file.read_text()).get("result") for file in folder.glob("*/*/run.json")]
    return Outcome(argv, code, output, time.monotonic() - began, next(iter(results), None) or {})


def _become(argv: list[str], folder: Path, written: io.TextIOBase) -> None:
    """Run the command in the forked process; never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
        for stream in (1, 2):
            os.dup2(written.fileno(), stream)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        printer.out.file = sys.stdout
        printer.err.file = sys.stderr
        fixed = [
            f"output_dir={folder}",
            f"data_dir={folder}/data",
            "tracking=false",
            "offline=true",
        ]
        code = cli._answer([*argv, *fixed])
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _wait(child: int, until: float) -> int | None:
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
