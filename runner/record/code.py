"""Version of the running code: commit, hash of uncommitted changes, and versions of packages."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from runner.record.facts import Facts

ROOT = Path(__file__).parent.parent.parent
SOURCES = ("*.py", "*.yaml", "*.toml")
# patterns of untracked source files; other YAML may belong to records in the checkout
NEW_SOURCES = ("*.py", "conf/*.yaml", "components/*.yaml", "*.toml")
PACKAGES = (
    "bayes-runner",
    "torch",
    "gpytorch",
    "linear_operator",
    "hydra-core",
    "omegaconf",
    "mlflow",
    "numpy",
    "scipy",
    "scikit-learn",
)

# distributions with a name that differs from the package
DISTRIBUTIONS = {"mlflow": "mlflow-skinny"}


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=10
    ).stdout


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def commit(keep_diff: bool = False) -> dict[str, str]:
    """Commit of the code; empty outside a checkout.

    ``sha`` of the commit, ``diff_sha256`` of uncommitted changes, if any, and with
    ``keep_diff`` the ``diff`` itself, which may contain private content.
    """
    try:
        top, sha = _git("rev-parse", "--show-toplevel", "HEAD").split("\n")[:2]
        # installed in a folder of another repository
        if not sha or Path(top) != ROOT.resolve():
            return {}
        diff = _git("diff", "HEAD", "--", *SOURCES)
        untracked = _git("ls-files", "--others", "--exclude-standard", "--", *NEW_SOURCES)
        for path in sorted(untracked.splitlines()):
            diff += f"new file {path}\n{(ROOT / path).read_text(errors='replace')}"
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    changed = {"diff_sha256": _hash(diff)} if diff else {}
    return {"sha": sha} | changed | ({"diff": diff} if diff and keep_diff else {})


@cache
def source_digest() -> str:
    """SHA-256 of the sources of this installation, for a wheel without commits."""
    digest = hashlib.sha256()
    for folder in ("components", "runner", "conf"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml"):
                digest.update(
                    path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes()
                )
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the relevant packages, if installed."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        if (number := installed_version(package)) is not None:
            numbers[package] = number
    return numbers


def installed_version(package: str) -> str | None:
    """Version of a package, or None if it is not installed."""
    try:
        return version(DISTRIBUTIONS.get(package, package))
    except PackageNotFoundError:
        return None


def identity(git: dict[str, str], packages: dict[str, str]) -> Facts:
    """Identity of the code in checkpoints and records, without the diff itself."""
    return {k: git[k] for k in ("sha", "diff_sha256") if k in git} | {"versions": packages}


def describe_commit(git: Facts) -> str:
    """Text with the commit of a run and a note about uncommitted changes."""
    changes = " with uncommitted changes" if "diff_sha256" in git else ""
    return str(git.get("sha", ""))[:10] + changes


def difference(before: Facts, now: Facts) -> str | None:
    """Describe the difference of two versions of the code in one line; None if equal or unknown."""
    parts = []
    if any(before.get(key) != now.get(key) for key in ("sha", "diff_sha256")):
        commits = [describe_commit(code) or "unknown" for code in (before, now)]
        same = " (other changes)" if commits[0] == commits[1] else ""
        parts.append(f"commit {commits[0]} before, {commits[1]} now{same}")
    old = before["versions"]
    new = now["versions"]
    parts += [
        f"{p} {old[p]} before, {new[p]} now"
        for p in sorted(old.keys() & new.keys())
        if old[p] != new[p]
    ]
    return "; ".join(parts) or None
