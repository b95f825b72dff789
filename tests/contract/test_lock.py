"""requirements.lock has a version with hashes for every requirement of pyproject.toml, within its
bounds, and names no index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXT = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = re.findall(r"^([a-z0-9.-]+)==(\S+)", TEXT, re.MULTILINE)
PIN = r"[a-z0-9.-]+==[\w.]+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+"


def test_lock_has_only_names_versions_and_hashes():
    packages = re.split(r"\n(?=\S)", TEXT.strip())
    wrong = [
        package for package in packages if not re.fullmatch(PIN, package) and package[0] != "#"
    ]
    assert not wrong  # no build tag, no host, no path
    names = [name for name, _ in PINS]
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


def test_lock_has_every_requirement():
    locked = dict(PINS) | {"torch": re.findall(r"torch==([\d.]+)", TEXT)[0]}
    for text in [*PROJECT["dependencies"], *requirements_of("dev")]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), text


def test_setup_installs_the_lock():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"^\t.*(?:pip install|\$\(INSTALL\)) (.*)", makefile, re.MULTILINE)
    pinned = (
        "--require-hashes -r requirements.lock",
        "-c .venv/constraints.txt",
        "--no-deps --no-build-isolation -e .",
        "torch==",
        "-r scripts/peers/requirements.txt",  # pins that differ from ours
        "--upgrade pip",
        "--quiet uv",  # of ``make lock`` itself
    )
    assert all(any(words in install for words in pinned) for install in installs)
    peers = [
        line
        for line in (ROOT / "scripts/peers/requirements.txt").read_text().splitlines()
        if line[0] != "#"
    ]
    assert peers
    assert all("==" in line for line in peers)
