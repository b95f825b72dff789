"""Edits of source files by function and expression, whatever the layout of the lines."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MODULE = "<module>"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Edit:
    """One expression, or consecutive statements, of a function, and the text that replaces them.

    ``function`` is the qualified name in the file, ``<module>`` outside any.  ``old`` is compared
    as syntax, so formatting and comments do not matter.  It must occur once."""

    file: str
    function: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        """The edited source.

        Raises:
            ValueError: the function or ``old`` is absent, or ``old`` is ambiguous.
        """
        scope = find_scope(parse_source(source), self.function)
        if scope is None:
            raise ValueError(f"{self.file} has no function {self.function}")
        spans = find_spans(scope, self.old)
        if len(spans) != 1:
            raise ValueError(f"{self.file}, {self.function}: {len(spans)} times {self.old!r}")
        first, last = spans[0]
        return _replace(source, first, last, self.new)


@lru_cache(maxsize=64)
def parse_source(source: str) -> ast.Module:
    return ast.parse(source)


def find_scope(tree: ast.Module, function: str) -> ast.AST | None:
    """The definition of a qualified name; None: there is none."""
    scope: ast.AST | None = tree
    for name in [] if function == MODULE else function.split("."):
        inner = ast.walk(scope) if scope else ()
        scope = next((n for n in inner if isinstance(n, Definition) and n.name == name), None)
    return scope


def find_spans(scope: ast.AST, text: str) -> list[tuple[ast.AST, ast.AST]]:
    """First and last node of each place in a scope whose syntax is that text, in the order of the
    lines."""
    expression = parse_expression(text)
    if expression is not None:
        target = ast.dump(expression)
        same = (n for n in ast.walk(scope) if type(n) is type(expression))
        matches = [n for n in same if ast.dump(n) == target]
        spans: list[tuple[ast.AST, ast.AST]] = [(n, n) for n in matches]
    else:
        statements = [ast.dump(n) for n in ast.parse(textwrap.dedent(text)).body]
        spans = [span for block in _blocks(scope) for span in _runs(block, statements)]
    return sorted(spans, key=lambda span: _start(span[0]))


def parse_expression(text: str) -> ast.expr | None:
    """The expression that a text is; None: it is statements."""
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError:
        return None


def _blocks(scope: ast.AST) -> list[list[ast.stmt]]:
    blocks = []
    for node in ast.walk(scope):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                blocks.append(value)
    return blocks


def _runs(block: list[ast.stmt], statements: list[str]) -> list[tuple[ast.AST, ast.AST]]:
    """Places in a block where these statements follow each other."""
    dumps = [ast.dump(n) for n in block]
    n = len(statements)
    return [
        (block[i], block[i + n - 1])
        for i in range(len(block) - n + 1)
        if dumps[i : i + n] == statements
    ]


def _start(node: ast.AST) -> tuple[int, int]:
    decorators = node.decorator_list if isinstance(node, Definition) else []
    first = decorators[0] if decorators else node
    line, column = getattr(first, "lineno"), getattr(first, "col_offset")  # noqa: B009
    return (line, column - 1) if decorators else (line, column)


def _replace(source: str, first: ast.AST, last: ast.AST, new: str) -> str:
    lines = source.split("\n")
    line, column = _start(first)
    end_line, end_column = getattr(last, "end_lineno"), getattr(last, "end_col_offset")  # noqa: B009
    before = lines[line - 1].encode()[:column].decode()
    after = lines[end_line - 1].encode()[end_column:].decode()
    if parse_expression(new) is None:
        pad = "\n" + before[: len(before) - len(before.lstrip())]
        new = pad.join(new.strip("\n").split("\n"))
    return "\n".join([*lines[: line - 1], before + new + after, *lines[end_line:]])


def apply_edits(root: Path, edits: tuple[Edit, ...]) -> dict[Path, str]:
    """Edit files of a tree; their sources before.

    Raises:
        ValueError: an edit does not fit; no file is changed then.
    """
    before: dict[Path, str] = {}
    after: dict[Path, str] = {}
    for edit in edits:
        path = root / edit.file
        if path not in before:
            if not path.is_file():
                raise ValueError(f"no file {edit.file}")
            before[path] = path.read_text(encoding="utf-8")
        after[path] = edit.apply(after.get(path, before[path]))
    for path, source in after.items():
        path.write_text(source, encoding="utf-8")
    return before
