"""Arguments of the sub-commands: a mistake in them is one line, as any other."""

from __future__ import annotations

import argparse
import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NoReturn

from runner.errors import ConfigError


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


def add_output_dir(parser: argparse.ArgumentParser) -> None:
    """Add ``--output-dir`` to a sub-command that reads or writes records."""
    parser.add_argument(
        "--output-dir", default="outputs", help="where runs are recorded (default: outputs)"
    )


def check_flags(argv: list[str]) -> None:
    """Flags of a command line of overrides, which are Hydra's.

    Raises:
        ConfigError: Hydra knows no such flag.
    """
    from hydra._internal.utils import get_args_parser

    stderr = io.StringIO()
    try:
        with redirect_stderr(stderr), redirect_stdout(io.StringIO()):
            get_args_parser().parse_args(argv)
    except SystemExit as end:
        if end.code:  # --version ends well, when Hydra parses them again
            line = stderr.getvalue().strip().splitlines()[-1]
            raise ConfigError(
                f"{line.partition('error: ')[2]}; runner --hydra-help tells the flags"
            ) from None
