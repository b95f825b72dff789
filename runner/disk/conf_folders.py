"""The folders of YAML files that a command reads: the runner's own and, after it, the one that
``--config-dir`` adds.

The added one is kept in the environment, so that the processes of a sweep or a study find the same
files."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner import CONF
from runner.errors import ConfigError

ENV_VARIABLE = "RUNNER_CONFIG_DIR"
FLAGS = ("--config-dir", "-cd")


def user_folder() -> Path | None:
    """The user's own folder; None if there is no such folder."""
    location = os.environ.get(ENV_VARIABLE)
    return Path(location) if location else None


def folders() -> list[Path]:
    """Folders searched for a file, in this order."""
    folder = user_folder()
    return [CONF] if folder is None else [CONF, folder]


def find(group: str, name: str) -> Path | None:
    """The file ``<group>/<name>.yaml``; None if it does not exist."""
    return next(
        (path for folder in folders() if (path := folder / group / f"{name}.yaml").is_file()), None
    )


def names(group: str) -> list[str]:
    """Names of a group's files, sorted."""
    return sorted({path.stem for folder in folders() for path in (folder / group).glob("*.yaml")})


def use(folder: str | None) -> None:
    """Adds a folder for the rest of the command; files that the runner's own of the same name hide
    are named.

    Raises:
        ConfigError: there is no such folder.
    """
    if folder is None:
        return
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise ConfigError(f"--config-dir {folder}: no such folder")
    os.environ[ENV_VARIABLE] = str(path)
    hidden = [
        file for file in sorted(path.glob("*/*.yaml")) if (CONF / file.relative_to(path)).is_file()
    ]
    for file in hidden:
        print(
            f"{file}: not read, the runner has one of that name; call yours otherwise",
            file=sys.stderr,
        )


@contextmanager
def restore_folders_on_exit() -> Iterator[None]:
    """Context that forgets, on exit, the folders added with ``use`` inside it."""
    before = os.environ.get(ENV_VARIABLE)
    try:
        yield
    finally:
        os.environ.pop(ENV_VARIABLE, None)
        if before is not None:
            os.environ[ENV_VARIABLE] = before


def add_option(parser: ArgumentParser) -> None:
    """``--config-dir`` of a sub-command."""
    parser.add_argument(
        "--config-dir", metavar="DIR", help="a folder of YAML files of your own, laid out as conf/"
    )


def split_config_dir(argv: list[str]) -> tuple[list[str], str | None]:
    """A command line of overrides without ``--config-dir``, and the folder that it names.

    Raises:
        ConfigError: the flag names none.
    """
    rest = []
    folder = None
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in FLAGS:
            rest.append(word)
            continue
        folder = value if equals else next(words, "")
        if not folder:
            raise ConfigError(f"{flag}: give it a folder of YAML files, {flag} conf")
    return rest, folder
