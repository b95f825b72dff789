"""Plug-ins: users' modules that register components, imported only when they are named."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import ArgumentParser
from collections.abc import Collection, Iterable
from pathlib import Path

from runner.disk import conf_folders
from runner.errors import ConfigError


def add_option(parser: ArgumentParser, what: str) -> None:
    """Add the option ``--plugin`` to a sub-command; it may be repeated."""
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help=what)


def add_own_options(parser: ArgumentParser, what: str) -> None:
    """Add the options of users' own files: ``--config-dir`` and ``--plugin``."""
    conf_folders.add_option(parser)
    add_option(parser, what)


def import_plugins(modules: Iterable[object], key: str = "plugins") -> None:
    """Import modules; each registers its components.

    Raises:
        ConfigError: an import failed; the message gives the file and line.
    """
    for entry in modules:
        module = module_name(entry, key)
        from components.contracts.plugins.process_settings import preserve_settings

        # imported here because it loads pydantic
        from components.contracts.user_code import refusal

        try:
            with preserve_settings():
                importlib.import_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # including SystemExit of a script
            message = str(refusal(f"{key}: {module}", error))
            if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
                message = (
                    f"{key}: module {module!r} not found ({error}); add its folder to PYTHONPATH"
                )
            raise ConfigError(message) from None


def module_name(given: object, key: str = "plugins") -> str:
    """Validate the name of a module.

    Raises:
        ConfigError: the name is not a module name.
    """
    if isinstance(given, str) and given.endswith(".py"):
        raise ConfigError(
            f"{key}: {given!r} is a file; write the module's name, {Path(given).stem}"
        )
    if not isinstance(given, str) or not all(part.isidentifier() for part in given.split(".")):
        raise ConfigError(f"{key}: {given!r} is not a module name, such as my_module")
    return given


def source_file(module: str) -> Path | None:
    """File of a module, also in the current folder, or None.

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


def refuse_unknown_modules(modules: Collection[str], whose: str, fix: str) -> None:
    """Refuse plug-ins that are named by a study or a record and not on the command line.

    Raises:
        ConfigError: there are such plug-ins; the message gives the option that imports them.
    """
    if modules:
        raise ConfigError(
            f"{whose} imports {', '.join(modules)}, code outside the runner; {fix} if you trust it"
        )


def confirm_import(modules: Collection[str], whose: str) -> None:
    """Ask on a terminal for permission to import; elsewhere ``refuse_unknown_modules``."""
    if modules and sys.stdin.isatty() and sys.stderr.isatty():
        question = (
            f"{whose} imports {', '.join(modules)}, code outside the runner; import it? [y/N] "
        )
        print(question, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    refuse_unknown_modules(modules, whose, "give --trust")
