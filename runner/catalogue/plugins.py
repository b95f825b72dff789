"""Modules of users, which register components of their own: imported when they are named, and only
then."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import ArgumentParser
from collections.abc import Collection, Iterable
from pathlib import Path

from runner.errors import ConfigError


def add_option(parser: ArgumentParser, what: str) -> None:
    """``--plugin`` of a sub-command, which may be given several times."""
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help=what)


def import_plugins(modules: Iterable[object], key: str = "plugins") -> None:
    """Import modules; each registers its components.

    Raises:
        ConfigError: one cannot be imported; the message gives the file and line of the
            failure.
    """
    for entry in modules:
        module = module_name(entry, key)
        from components.contracts.plugins.process_settings import preserve_settings

        # imports pydantic: only plug-ins pay for it
        from components.contracts.user_code import refusal

        try:
            with preserve_settings():
                importlib.import_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too, of a script that is to be run
            message = str(refusal(f"{key}: {module}", error))
            if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
                message = f"{key}: no module {module!r} ({error}); is its folder on PYTHONPATH?"
            raise ConfigError(message) from None


def module_name(given: object, key: str = "plugins") -> str:
    """Name of a module, validated.

    Raises:
        ConfigError: it is not a module name.
    """
    if isinstance(given, str) and given.endswith(".py"):
        raise ConfigError(
            f"{key}: {given!r} is a file; write the module's name, {Path(given).stem}"
        )
    if not isinstance(given, str) or not all(part.isidentifier() for part in given.split(".")):
        raise ConfigError(f"{key}: {given!r} is no module's name, such as my_module")
    return given


def source_file(module: str) -> Path | None:
    """File of a module, also from the present folder; None if there is no file.

    The module is not imported.
    """
    name = module.strip().replace(".", "/")
    for folder in (
        Path(),
        *map(Path, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
        *map(Path, sys.path),
    ):
        for path in (folder / f"{name}.py", folder / name / "__init__.py"):
            if name and path.is_file():
                return path
    return None


def refuse_unknown_modules(modules: Collection[str], whose: str, mend: str) -> None:
    """Refuses code that something else than the command line names: a study, a record.

    Raises:
        ConfigError: there is some; with what to say to have it imported.
    """
    if modules:
        raise ConfigError(
            f"{whose} imports {', '.join(modules)}, code that is not the runner's; {mend} if you know it"
        )


def confirm_import(modules: Collection[str], whose: str, mend: str) -> None:
    """``refuse_unknown_modules``, after a question where there is somebody to answer it."""
    if modules and sys.stdin.isatty() and sys.stderr.isatty():
        question = f"{whose} imports {', '.join(modules)}, code that is not the runner's; import it? [y/N] "
        print(question, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    refuse_unknown_modules(modules, whose, mend)
