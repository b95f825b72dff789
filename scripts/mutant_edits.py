"""Edits of source files by function and expression, independent of formatting."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MODULE = "<module>"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
NodeLocation = tuple[ast.AST, str, int]  # node, field, position in the field


@dataclass(frozen=True)
class Edit:
    """Replacement of an expression, or of consecutive statements, in a function.

    ``function`` is the qualified name in the file, or ``<module>`` outside functions.  ``old`` is
    compared as syntax, so formatting and comments do not matter.  It must occur once."""

    file: str
    function: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        """Edited source, without comments.

        Raises:
            ValueError: the function or ``old`` is missing, or ``old`` is ambiguous.
        """
        tree = ast.parse(source)
        scope = find_scope(tree, self.function)
        if scope is None:
            raise ValueError(f"{self.file} has no function {self.function}")
        old, new = parse_pair(self.old, self.new)
        places = list(find_places(scope, old))
        if len(places) != 1:
            raise ValueError(f"{self.file}, {self.function}: {len(places)} times {self.old!r}")
        node, field, first = places[0]
        value = getattr(node, field)
        if isinstance(value, list):
            value[first : first + len(old)] = new
        else:
            setattr(node, field, new[0])
        # the registry searches the file of a component by the text of its decorator
        return re.sub(r"@register\('(\w+)', '(\w+)'\)", r'@register("\1", "\2")', ast.unparse(tree))

    def fits(self, source: str) -> bool:
        """True if the edit can be applied."""
        try:
            return self.apply(source) != source
        except ValueError:
            return False


def find_scope(tree: ast.Module, function: str) -> ast.AST | None:
    """Definition of a qualified name, or None."""
    scope: ast.AST | None = tree
    for name in [] if function == MODULE else function.split("."):
        inner = ast.walk(scope) if scope else ()
        scope = next((n for n in inner if isinstance(n, Definition) and n.name == name), None)
    return scope


def parse_pair(old: str, new: str) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
    """Parse both texts as expressions, or else as statements."""
    try:
        bodies = [ast.parse(f"({text}\n)", mode="eval").body for text in (old, new)]
        return bodies[:1], bodies[1:]
    except SyntaxError:
        first, second = (ast.parse(textwrap.dedent(text)).body for text in (old, new))
        return first, second


def find_places(scope: ast.AST, old: Sequence[ast.AST]) -> Iterator[NodeLocation]:
    """Places in a scope with these nodes in sequence."""
    dumps = [ast.dump(node) for node in old]
    for parent in ast.walk(scope):
        for field, value in ast.iter_fields(parent):
            children = value if isinstance(value, list) else [value]
            for first, child in enumerate(children):
                nodes = children[first : first + len(old)]
                if type(child) is type(old[0]) and [ast.dump(node) for node in nodes] == dumps:
                    yield parent, field, first


def apply_edits(root: Path, edits: tuple[Edit, ...]) -> dict[Path, str]:
    """Edit files of a tree; return their original sources.

    Raises:
        ValueError: an edit does not match; all files remain unchanged.
    """
    original: dict[Path, str] = {}
    after: dict[Path, str] = {}
    for edit in edits:
        path = root / edit.file
        if not path.is_file():
            raise ValueError(f"no file {edit.file}")
        original.setdefault(path, path.read_text(encoding="utf-8"))
        after[path] = edit.apply(after.get(path, original[path]))
    for path, source in after.items():
        path.write_text(source, encoding="utf-8")
    return original
