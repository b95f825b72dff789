"""The temporary folder of a sweep goes with it; that of one that was killed goes with the next."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from runner.mistakes import FAILURES
from runner.sweep.failures import noted_failures


def test_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (dead := subprocess.Popen([sys.executable, "-c", ""])).wait()
    for name in (f"runner-{dead.pid}-abc", f"runner-{os.getppid()}-abc", "runner-somebodys"):
        (tmp_path / name).mkdir()
    with noted_failures() as file:
        assert os.environ[FAILURES] == str(file)
        file.write_text("{}\n")
        assert file.parent.parent == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"runner-{os.getppid()}-abc", "runner-somebodys"]
    assert FAILURES not in os.environ
