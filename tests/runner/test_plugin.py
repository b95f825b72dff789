"""The README's example of a new inference method, run exactly as it is printed there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent.parent / "README.md"


def _blocks() -> dict[str, str]:
    """File name -> content of every fenced block whose first line is a comment with a file name."""
    found = {}
    for block in re.findall(r"```\w+\n(.*?)```", README.read_text(), re.S):
        named = re.match(r"# ([\w./-]+\.(?:py|yaml))\n", block)
        if named:
            found[named.group(1)] = block
    return found


def test_readme_example(tmp_path):
    blocks = _blocks()
    (module,) = (name for name in blocks if name.endswith(".py") and not name.startswith("test_"))
    assert len(blocks[module].splitlines()) < 40
    for name, content in blocks.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    command = re.search(r"PYTHONPATH=\. (runner .*?inference=\w+.*)", README.read_text()).group(1)
    runner = str(Path(sys.executable).parent / "runner")
    environment = {"PYTHONPATH": ".", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    words = [*shlex.split(command)[1:], "tracking=false"]
    done = subprocess.run([runner, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "record" in done.stdout
    (test,) = (name for name in blocks if name.startswith("test_"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", test],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
