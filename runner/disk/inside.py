"""Names that become paths.

A name in a config, a study or a record cannot lead out of its folder.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from runner.errors import ConfigError

LONGEST_NAME = 200  # bytes; a file system takes 255, with endings


def inside(folder: Path, name: str, key: str) -> Path:
    """Path ``folder/name``; ``key`` is the name of the setting in messages.

    Raises:
        ConfigError: the name leads out of the folder, is the folder itself, or is too long.
    """
    parts = PurePath(name).parts
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise ConfigError(f"{key}={name[:40]}…: longer than {LONGEST_NAME} bytes; shorten it")
    if (
        not parts
        or ".." in parts
        or PurePath(name).is_absolute()
        or any(ord(letter) < 32 for letter in name)
    ):
        raise ConfigError(f"{key}={name!r}: leads out of its folder; give a plain name")
    return folder / name


def is_inside(folder: Path, path: Path) -> bool:
    """True if a path lies in a folder after its links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def refuse_links(folder: Path) -> None:
    """Refuse an output folder that contains a link to a path outside it.

    Raises:
        ConfigError: a link leads out of the folder.
    """
    for path in folder.rglob("*"):
        if path.is_symlink():
            real_file(folder, str(path.relative_to(folder)), f"{folder.name}: its file")


def real_file(folder: Path, name: str, key: str) -> Path:
    """``inside`` for a file to be read or uploaded; links out of the folder are refused too.

    Raises:
        ConfigError: the name, or the target of its link, lies outside the folder.
    """
    path = inside(folder, name, key)
    if not is_inside(folder, path):
        raise ConfigError(f"{key}={name!r}: links to a path outside {folder}; remove the link")
    return path
