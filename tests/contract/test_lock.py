"""requirements.lock: a version of everything that pyproject.toml asks for, within its bounds, from
nowhere in particular."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = [
    line
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    if line[:1] != "#"
]


def test_the_lock_is_names_and_versions_alone():
    wrong = [line for line in LINES if not re.fullmatch(r"[a-z0-9.-]+==[\w.]+", line)]
    assert not wrong  # no build's tag, no host, no path
    names = [line.partition("==")[0] for line in LINES]
    assert sorted(set(names)) == names


def requirements_of(extra: str) -> list[str]:
    """Requirements of an extra, and of the project's own extras that it names."""
    out = []
    for text in PROJECT["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) == PROJECT["name"]:
            out += [text for name in requirement.extras for text in requirements_of(name)]
        else:
            out.append(text)
    return out


def test_the_lock_has_all_that_is_asked_for():
    locked = dict(line.split("==") for line in LINES)
    for text in [*PROJECT["dependencies"], *requirements_of("dev")]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), text


def test_setup_installs_the_lock():
    installs = re.findall(r"pip install (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    own = "-r scripts/peers/requirements.txt"  # peers that pin what we have newer: locked there
    assert all(
        "-c requirements.lock" in words or own in words
        for words in installs
        if "--upgrade pip" not in words
    )
    peers = [
        line
        for line in (ROOT / "scripts/peers/requirements.txt").read_text().splitlines()
        if line[0] != "#"
    ]
    assert peers
    assert all("==" in line for line in peers)
