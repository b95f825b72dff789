"""Runs are forked from one process with imported modules, and do not depend on its life."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from support.runs.made_studies import STEP_SIZES

from runner.study import snapshot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs are forked on Linux only")


def wait_for(value):
    deadline = time.monotonic() + 120
    while not (result := value()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def test_run_survives_the_process_that_forked_it(tmp_path):
    words = [*STEP_SIZES["overrides"][1:], "steps=1000000"]
    rows = STEP_SIZES["rows"][:1]
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump(STEP_SIZES | {"grid": {}, "overrides": words, "rows": rows}))
    command = [sys.executable, "-m", "runner", "study", str(path), "--output-dir", str(tmp_path)]
    study = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: list(tmp_path.glob("mog/*/metrics.jsonl")))
        (lock,) = tmp_path.glob("studies/two/going/*")
        run = int(lock.read_text().split()[0])
        status = Path(f"/proc/{run}/status").read_text()
        server = int(re.search(r"PPid:\s*(\d+)", status)[1])
        assert server != study.pid
        os.kill(server, signal.SIGKILL)
        time.sleep(1.0)  # several polls
        assert study.poll() is None, "the study waits for its run"
        os.kill(run, 0)  # raises an error if the run has ended
        study.terminate()
        assert study.wait(120) == 128 + signal.SIGTERM
    finally:
        study.kill()
    frozen = snapshot.load("two", tmp_path)
    assert frozen.state(frozen.runs[0]) == "interrupted"
    assert list(tmp_path.glob("mog/*/checkpoints/*.safetensors"))
