"""Arguments of the sub-commands: a mistake in them is one line, as any other."""

from __future__ import annotations

import argparse
import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import NoReturn

from runner.errors import ConfigError, nearest


class Parser(argparse.ArgumentParser):
    """``argparse``'s, which says what is wrong as every mistake is said, without the usage of the
    whole command."""

    def error(self, message: str) -> NoReturn:
        """Called by the parser on an error.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{self.prog}: {message}; {self.prog} --help tells more")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` to a sub-command with machine-readable output lines."""
    parser.add_argument(
        "--json", action="store_true", help="a JSON object a line, for other programs"
    )


def existing_folder(text: str | Path) -> Path:
    """Type of an argument that names a folder to read.

    Raises:
        ConfigError: the folder does not exist, with the nearest one.
    """
    path = Path(text)
    if path.is_dir():
        return path
    names = [entry.name for entry in path.parent.glob("*") if entry.is_dir()]
    raise ConfigError(f"{text}: no such folder{nearest(path.name, names)}")


def add_output_dir(parser: argparse.ArgumentParser, *, must_exist: bool = False) -> None:
    """Add ``--output-dir`` to a sub-command that writes records, or reads what exists."""
    parser.add_argument(
        "--output-dir",
        type=existing_folder if must_exist else str,
        default=Path("outputs") if must_exist else "outputs",
        help="where runs are recorded (default: outputs)",
    )


def parse_flags(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """Flags and overrides of a command line, by Hydra's parser.

    Raises:
        ConfigError: Hydra knows no such flag.
    """
    stderr = io.StringIO()
    try:
        with redirect_stderr(stderr):
            return parser.parse_args(argv)
    except SystemExit as end:
        if end.code:
            line = stderr.getvalue().strip().splitlines()[-1]
            raise ConfigError(
                f"{line.partition('error: ')[2]}; runner --hydra-help tells the flags"
            ) from None
        raise
