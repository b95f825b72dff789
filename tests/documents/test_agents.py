"""``SKILL.md`` and ``llms.txt`` of the package: their commands work, their files exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import runner
from runner.catalogue.sub_commands import COMMANDS

PACKAGE = Path(runner.__file__).parent
SKILL = (PACKAGE / "SKILL.md").read_text("utf-8")
LLMS = (PACKAGE / "llms.txt").read_text("utf-8")
LINES = re.findall(r"^    (\S.*)$", SKILL, re.M)


def test_ten_commands_exist():
    words = re.findall(r"^\| `runner (\S+)", SKILL, re.M)
    assert len(words) == 10
    assert {word for word in words if not word.startswith("+")} <= set(COMMANDS)


def test_links_of_llms_txt_lead_to_pages():
    docs = PACKAGE.parent / "docs"
    links = re.findall(r"\]\(([^)]+)\)", LLMS)
    assert len(links) > 10
    assert [link for link in links if not (docs / link).is_file()] == []


@pytest.mark.slow
def test_commands_of_the_six_goals_run(tmp_path):
    script = tmp_path / "bin" / "runner"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m runner "$@"\n')
    script.chmod(0o755)
    places = {
        "PATH": f"{script.parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{PACKAGE.parent}:{tmp_path}",
    }
    for line in LINES:
        result = subprocess.run(
            line.removeprefix("PYTHONPATH=. "),
            shell=True,
            cwd=tmp_path,
            env=os.environ | places,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{line}\n{result.stderr[-500:]}"
