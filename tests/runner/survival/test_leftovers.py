"""Temporary files of killed processes are removed by the next call; a lack of memory is reported in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from runner.disk.atomic import write_text
from runner.errors import RunFailure
from runner.execution import memory

KILLED = """
import os, signal, sys
from pathlib import Path
from runner.disk.atomic import replace_file
with replace_file(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_leftover_files_are_removed_by_the_next_call(tmp_path):
    target = tmp_path / "study.zip"
    (tmp_path / f".other.zip.{os.getpid()}").write_text("another writer's")
    code = subprocess.run([sys.executable, "-c", KILLED, str(target)]).returncode
    assert code == -signal.SIGKILL
    assert len(list(tmp_path.glob(".study*"))) == 1
    write_text(target, "whole")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"study.zip", f".other.zip.{os.getpid()}"}


def chain(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "free", "is_exhausted"),
    [
        (MemoryError(), 2**40, True),
        (ImportError("libx.so: failed to map segment from shared object"), 2**40, True),
        (chain(ImportError("broken install"), MemoryError()), 2**40, True),
        (SyntaxError("expected ':'"), 2**20, True),
        (SyntaxError("expected ':'"), 2**40, False),
    ],
)
def test_exhausted_memory_is_recognised(monkeypatch, error, free, is_exhausted):
    monkeypatch.setattr(memory, "address_space_left", lambda: free)
    assert (memory.out_of_memory_message(error) is not None) == is_exhausted


@pytest.mark.parametrize(
    ("given", "threads"), [("2", 2), ("2,1", 2), ("abc", 3), ("0", 3), ("-1", 3)]
)
def test_too_little_address_space_for_blas_is_refused(monkeypatch, given, threads):
    monkeypatch.setattr(memory, "address_space_left", lambda: 100 * 2**20)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    needed = f"leaves 100 MB, but threads={threads} requires {threads * 200} MB; raise the limit"
    with pytest.raises(RunFailure, match=needed):
        memory.load_blas()


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [450, 760, 900, 1060])
@pytest.mark.parametrize("threads", [1, 2])
def test_run_ends_at_the_limit_of_address_space(tmp_path, megabytes, threads):
    words = f"ulimit -v {megabytes * 1024}; exec {sys.executable} -m runner.commands.cli +experiment=mog smoke=true"
    outcome = subprocess.run(
        ["bash", "-c", f"{words} threads={threads} offline=true output_dir={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert outcome.returncode == 0 or "out of memory" in outcome.stderr
