"""Writes requirements.lock: the version of every package that the runner and its tests need here,
for ``make lock``.

What torch brings for one kind of machine alone is left to torch, and so is the tag of its build
("+cpu")."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "bayes-runner"
LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"
HEADER = "# Versions that the tests passed with (make lock); make setup installs them: pip install -c requirements.lock.\n"


def needed(name: str, extras: frozenset[str], found: dict[str, str]) -> None:
    """Adds what a package needs, itself or with some extras, to the versions found."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and not any(
            marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            continue
        other = canonicalize_name(requirement.name)
        try:
            version = distribution(other).version.partition("+")[0]
        except PackageNotFoundError:
            continue
        if other not in found or requirement.extras:
            found[other] = version
            needed(other, frozenset(requirement.extras), found)


def main() -> None:
    """Writes the file."""
    versions: dict[str, str] = {}
    needed(NAME, frozenset({"dev"}), versions)
    versions.pop(NAME, None)
    LOCK.write_text(
        HEADER + "".join(f"{name}=={versions[name]}\n" for name in sorted(versions)),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
