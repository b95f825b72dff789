"""Names that become paths.

Any name in a config, a study or a record stays inside its folder.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from runner.errors import ConfigError

LONGEST_NAME = 200  # bytes; a file system takes 255, with endings


def inside(folder: Path, name: str, key: str) -> Path:
    """``folder/name``; ``key`` is what the user knows the name as.

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
    """True if a path, links followed, lies in a folder."""
    return path.resolve().is_relative_to(folder.resolve())


def refuse_links(folder: Path) -> None:
    """Refuses a folder that is about to be written to and holds a link to elsewhere: what is
    written there would go there.

    Raises:
        ConfigError: naming the link.
    """
    for path in folder.rglob("*"):
        if path.is_symlink():
            real_file(folder, str(path.relative_to(folder)), f"{folder.name}: its file")


def real_file(folder: Path, name: str, key: str) -> Path:
    """``inside``, of a file that is read or sent on: a link that leads out of the folder is refused
    too.

    Raises:
        ConfigError: the name, or what it is a link to, lies elsewhere.
    """
    path = inside(folder, name, key)
    if not is_inside(folder, path):
        raise ConfigError(f"{key}={name!r}: is a link that leads out of {folder}; remove it")
    return path
