"""Folders of YAML files: the runner's own, then the one added with ``--config-dir``.

The added folder is stored in the environment, so that the processes of a sweep or a study read the
same files."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from runner import CONF
from runner.errors import ConfigError

ENV_VARIABLE = "RUNNER_CONFIG_DIR"
FLAGS = ("--config-dir", "-cd")


def user_folder() -> Path | None:
    """Folder of the user, or None."""
    location = os.environ.get(ENV_VARIABLE)
    return Path(location) if location else None


def folders() -> list[Path]:
    """Folders in the order of the search."""
    folder = user_folder()
    return [CONF] if folder is None else [CONF, folder]


def find(group: str, name: str) -> Path | None:
    """File ``<group>/<name>.yaml``, or None."""
    return next(
        (path for folder in folders() if (path := folder / group / f"{name}.yaml").is_file()), None
    )


def names(group: str) -> list[str]:
    """Names of a group's files, sorted."""
    return sorted({path.stem for folder in folders() for path in (folder / group).glob("*.yaml")})


def use(folder: str) -> str:
    """Add a folder for the rest of the command, and return it; warns of files hidden by the
    runner's own.

    Raises:
        ConfigError: the folder does not exist.
    """
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise ConfigError(f"--config-dir {folder}: no such folder")
    os.environ[ENV_VARIABLE] = str(path)
    for file in sorted(path.glob("*/*.yaml")):
        if (CONF / file.relative_to(path)).is_file():
            hint = "ignored, because the runner has a file of that name; rename yours"
            print(f"{file}: {hint}", file=sys.stderr)
    return folder


@contextmanager
def restore_on_exit(*variables: str) -> Iterator[None]:
    """Context that restores variables of the environment on exit."""
    previous = {name: os.environ.get(name) for name in variables}
    try:
        yield
    finally:
        for name, value in previous.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def restore_folders_on_exit() -> AbstractContextManager[None]:
    """Context that removes the folders added with ``use`` on exit."""
    return restore_on_exit(ENV_VARIABLE)


def add_option(parser: ArgumentParser) -> None:
    """Add the option ``--config-dir``, which adds its folder, to a sub-command."""
    parser.add_argument(
        "--config-dir",
        type=use,
        metavar="DIR",
        help="a folder of YAML files of your own, laid out as conf/",
    )


def use_given(argv: list[str]) -> list[str]:
    """Add the folder of ``--config-dir`` on a command line of overrides, and return its other words.

    Raises:
        ConfigError: the flag has no folder, or the folder does not exist.
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
            raise ConfigError(f"{flag}: a folder of YAML files is missing; write {flag} conf")
    if folder:
        use(folder)
    return rest
