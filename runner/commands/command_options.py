"""Options of the sub-commands, read from the source text of their parsers.

Tab completion therefore imports no command.

A literal ``add_argument`` is read in place; ``conf_folders.add_option(parser)`` and
similar calls are replaced by the function's own ``add_argument``s.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import runner

ROOT = Path(runner.__path__[0])
# Functions that give a parser options, and the module in which each is written.
SHARED = {
    "conf_folders.add_option": "disk/conf_folders.py",
    "plugins.add_option": "catalogue/plugins.py",
    "add_json": "terminal/arguments.py",
    "add_output_dir": "terminal/arguments.py",
    "add_runs": "study/study_arguments.py",
}
Option = tuple[str, str]  # --name, and its help


def _file(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")


def _text(node: ast.expr | None) -> str:
    """Text of a help string, as far as it is a literal."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…" if node is not None else ""


def _read(path: Path, function: str | None = None) -> Iterator[Option]:
    """Options that a file, or one function of it, gives a parser."""
    tree: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    if function is not None:
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        tree = next(node for node in functions if node.name == function)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in SHARED:
            # the help, if the function gets one
            description = _text(node.args[1]) if len(node.args) > 1 else ""
            shared = _read(ROOT / SHARED[called], called.rpartition(".")[2])
            yield from ((name, description or meaning) for name, meaning in shared)
        elif called.endswith(".add_argument") and node.args:
            name = _text(node.args[0])
            help_text = next(
                (keyword.value for keyword in node.keywords if keyword.arg == "help"), None
            )
            if name.startswith("--"):
                yield name, _text(help_text)


@cache
def list_command_options(module: str) -> tuple[Option, ...]:
    """The options of the command that a module has, each with its meaning, in the order of the
    parser."""
    return (*dict(_read(_file(module))).items(), ("--help", "what the command does"))
