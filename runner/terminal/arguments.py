"""Arguments of sub-commands, with errors in one line."""

from __future__ import annotations

import argparse
import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NoReturn

from runner.errors import ConfigError, nearest


class Parser(argparse.ArgumentParser):
    """Parser of ``argparse`` with one-line errors, without the usage of the command.

    Every command has the option ``--json``; ``runner.commands.cli`` then converts the output.
    """

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.add_argument("--json", action="store_true", help="print one JSON object per line")

    def parse(self, argv: list[str]) -> argparse.Namespace:
        """Parse the words of a command in any order; the first word is its name."""
        self.prog = f"runner {argv[0]}"
        return self.parse_intermixed_args(argv[1:])

    def add_count(
        self, option: str, meaning: str, default: int | None = None, least: int = 1, most: int = 0
    ) -> None:
        """Add an option with an integer of at least ``least``, and at most ``most`` if that is
        positive.
        """

        def integer(text: str) -> int:
            value = int(text)
            if value < least or 0 < most < value:
                limits = f"{least} to {most}" if most else f"≥ {least}"
                raise ConfigError(f"{option} {text}: must be {limits}")
            return value

        self.add_argument(option, type=integer, default=default, metavar="N", help=meaning)

    def add_overrides(self, meaning: str) -> None:
        """Add overrides, ``key=value``, with their meaning."""
        self.add_argument("overrides", nargs="*", default=[], metavar="key=value", help=meaning)

    def parse_with_overrides(self, argv: list[str], name: str) -> argparse.Namespace:
        """Parse the argument ``name`` and overrides in any order.

        Raises:
            ConfigError: an argument is wrong, or several words are no overrides.
        """
        given = self.parse(argv)
        words = [getattr(given, name), *given.overrides]
        names = [word for word in words if "=" not in word and word[:1] != "~"] or words[:1]
        if len(names) > 1:
            self.error(f"{names[1]}: give one {name}, then key=value")
        words.remove(names[0])
        return argparse.Namespace(**vars(given) | {name: names[0], "overrides": words})

    def error(self, message: str) -> NoReturn:
        """Report an error of the arguments.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{self.prog}: {message}; see {self.prog} --help")


def existing_folder(text: str | Path) -> Path:
    """Type of an argument for an existing folder.

    Raises:
        ConfigError: the folder does not exist; the message gives the nearest name.
    """
    path = Path(text)
    if path.is_dir():
        return path
    names = [entry.name for entry in path.parent.glob("*") if entry.is_dir()]
    raise ConfigError(f"{text}: no such folder{nearest(path.name, names)}")


def add_output_dir(parser: argparse.ArgumentParser, *, must_exist: bool = False) -> None:
    """Add the option ``--output-dir`` to a sub-command that reads or writes records."""
    parser.add_argument(
        "--output-dir",
        type=existing_folder if must_exist else Path,
        default=Path("outputs"),
        help="folder of records (default: outputs)",
    )


def parse_output_dir(words: list[str]) -> tuple[Path, list[str]]:
    """Folder of records given by a command line, and its other words."""
    parser = Parser(add_help=False)
    add_output_dir(parser)
    try:
        given, others = parser.parse_known_args(words)
    except ConfigError:  # the folder is missing
        return Path("outputs"), words
    return given.output_dir, others


def parse_flags(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """Parse flags and overrides with Hydra's parser.

    Raises:
        ConfigError: a flag is unknown to Hydra.
    """
    stderr = io.StringIO()
    try:
        with redirect_stderr(stderr):
            return parser.parse_args(argv)
    except SystemExit as end:
        if end.code:
            line = stderr.getvalue().strip().splitlines()[-1]
            raise ConfigError(f"{line.partition('error: ')[2]}; see runner --hydra-help") from None
        raise
