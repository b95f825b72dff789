"""Tab completion inside real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def shell(name: str, script: str, tmp_path: Path) -> list[str]:
    """Output of a shell with this checkout's ``runner`` and without the user's start-up files."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    stub = tmp_path / "runner"
    stub.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runner.commands.cli "$@"\n')
    stub.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    done = subprocess.run(
        [name, *quiet, "-c", script], capture_output=True, text=True, env=environment, timeout=60
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        (
            "runner +experiment=friend_or_foe_g",
            ["friend_or_foe_grid", "friend_or_foe_grid_as_published"],
        ),  # bash replaces what follows "="
        ("runner inference=q_learning,fpq", ["q_learning,fpq_learning"]),
        ("runner show inference/level", ["inference/level_k"]),
        ("runner compl", ["completion"]),
        ("runner dtype=", ["float64", "float32"]),
    ],
)
def test_completion_works_in_bash(line, replies, tmp_path):
    script = f"""
        eval "$(runner completion bash)"
        COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
        complete -p runner >&2 && _runner_complete runner
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert shell("bash", script, tmp_path) == replies


def test_completion_works_in_fish(tmp_path):
    script = "runner completion fish | source; complete -C 'runner +experiment=friend'; complete -C 'runner completion '"
    completions = [line.split("\t")[0] for line in shell("fish", script, tmp_path)]
    assert completions == ["+experiment=friend_or_foe", "bash", "fish", "zsh"]


def test_completion_works_in_zsh(tmp_path):
    """``compadd`` works only inside the completion system, so a stand-in prints its arguments."""
    script = """
        compdef() { :; }
        compadd() { echo "${(P)@[-1]}"; }
        _files() { echo files; }
        eval "$(runner completion zsh)"
        words=(runner +experiment=friend); CURRENT=2; PREFIX=+experiment=friend
        _runner_complete
        words=(runner ''); words[2]=+exp; PREFIX=+exp
        _runner_complete
        words=(runner doctor ''); CURRENT=3; PREFIX=''
        _runner_complete
    """
    assert shell("zsh", script, tmp_path) == ["+experiment=friend_or_foe", "+experiment=", "files"]
