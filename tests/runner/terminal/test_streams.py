"""Streams that have limited encodings, are closed or full, or have no reader never terminate a
command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = """
from runner.terminal import streams
streams.install()
streams.FaultTolerantFile.names_pipes = True
import sys, time
from runner.terminal.printer import out, err, complain
for k in range({lines}):
    out.print("ε ± ┃ :fire: [x]")
    print("né ε \\x1b[31m", flush=True)
    time.sleep({pause})
complain("err ε")
print("err ≥ \\x1b", file=sys.stderr)
open({mark!r}, "w").write("end")
raise SystemExit(3 if streams.has_lost_output() else 0)
"""


def start(
    tmp_path: Path, redirect: str, encoding: str = "utf-8", lines: int = 1, pause: float = 0.0
):
    script = SCRIPT.format(lines=lines, pause=pause, mark=str(tmp_path / "mark"))
    command = f'exec "$PYTHON" -c "$SCRIPT" {redirect}'
    env = {
        **os.environ,
        "PYTHON": sys.executable,
        "SCRIPT": script,
        "PYTHONIOENCODING": encoding,
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(["bash", "-c", command], env=env, capture_output=True, check=False)


def has_ended(tmp_path: Path) -> bool:
    return (tmp_path / "mark").read_text() == "end"


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("ascii", "? ? ? :fire: [x]\nn? ? ?[31m\n"),
        ("latin-1", "? ± ? :fire: [x]\nné ? ?[31m\n"),
        ("utf-8", "ε ± ┃ :fire: [x]\nné ε ␛[31m\n"),
    ],
)
def test_unsupported_characters_are_replaced(tmp_path, encoding, line):
    done = start(tmp_path, "", encoding)
    assert (done.returncode, done.stdout.decode(encoding)) == (0, line)
    assert "err " in done.stderr.decode(encoding)
    assert "Error" not in done.stderr.decode(encoding)
    assert "\x1b" not in done.stderr.decode(encoding)


@pytest.mark.parametrize(
    ("redirect", "code", "message"),
    [
        (">&-", 0, b""),
        ("2>&-", 0, b""),
        (">&- 2>&- <&-", 0, b""),
        (
            ">/dev/full",
            3,
            b"standard output: No space left on device; the command continues without a display\n",
        ),
        ("2>/dev/full", 0, b""),
        (">/dev/full 2>/dev/full", 3, b""),
    ],
)
def test_closed_and_full_streams_are_survived(tmp_path, redirect, code, message):
    done = start(tmp_path, redirect)
    assert done.returncode == code
    assert message in done.stderr
    assert b"Traceback" not in done.stderr
    assert has_ended(tmp_path)


def test_closed_pipe_is_reported_in_one_line(tmp_path):
    command = 'set -o pipefail; "$PYTHON" -c "$SCRIPT" | head -1'
    script = SCRIPT.format(lines=20, pause=0.02, mark=str(tmp_path / "mark"))
    env = {**os.environ, "PYTHON": sys.executable, "SCRIPT": script, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stderr.count("standard output: Broken pipe; the command continues") == 1
    assert has_ended(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">/dev/full", "| head -2"])
def test_run_is_recorded_without_its_display(tmp_path, redirect):
    words = f"+experiment=digits_fgsm smoke=true tracking=false eval_every=10 output_dir={tmp_path}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = f'set -o pipefail; "{sys.executable}" -m runner.commands.cli {words} {redirect}'
    done = subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    [facts] = tmp_path.glob("digits_fgsm/*/run.json")
    assert '"state": "done"' in facts.read_text()
