"""Generated mutants: sign, factor, comparison, off by one, swapped arguments.

They edit functions that cite a source in their docstring or in their class's docstring.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from scripts.mutant_edits import Definition, Edit

YEAR = re.compile(r"\b(?:19|20)\d\d\b")
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def mutate(node: ast.AST) -> ast.expr | None:
    """Mutate an expression; None if no operator applies."""
    wrong = copy.copy(node)
    match node, wrong:
        case ast.BinOp(op=op), ast.BinOp() if type(op) in OPERATORS:
            wrong.op = OPERATORS[type(op)]()
        case ast.Compare(ops=[op]), ast.Compare() if type(op) in OPERATORS:
            wrong.ops = [OPERATORS[type(op)]()]
        case ast.UnaryOp(op=ast.USub(), operand=operand), _:
            return operand
        case ast.Subscript(slice=ast.Constant(value=int(index))), ast.Subscript():
            wrong.slice = ast.Constant(index + 1)
        case ast.Call(args=[first, second, *rest]), ast.Call() if not is_starred(first, second):
            wrong.args = [second, first, *rest]
        case _:
            return None
    return wrong


def is_starred(*arguments: ast.expr) -> bool:
    """True if one of the arguments is ``*values``."""
    return any(isinstance(argument, ast.Starred) for argument in arguments)


def list_functions(
    tree: ast.AST, name: str = "", cited: bool = False
) -> Iterator[tuple[str, ast.AST]]:
    """Qualified name and node of each function with a source."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            is_cited = cited or bool(YEAR.search(ast.get_docstring(node) or ""))
            qualified_name = f"{name}.{node.name}".lstrip(".")
            if isinstance(node, ast.ClassDef):
                yield from list_functions(node, qualified_name, is_cited)
            elif is_cited:
                yield qualified_name, node


def list_edits(path: Path, root: Path) -> Iterator[Edit]:
    """Edits of a file by all operators, including ambiguous ones (their text occurs twice)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function, scope in list_functions(tree):
        for node in ast.walk(scope):
            wrong = mutate(node)
            if wrong is not None:
                file = path.relative_to(root).as_posix()
                yield Edit(file, function, ast.unparse(node), ast.unparse(wrong))


def generate_edits(root: Path, seed: int) -> Iterator[Edit]:
    """Edits in random order, each in a different file."""
    generator = random.Random(seed)
    paths = sorted((root / "components").rglob("*.py"))
    for path in generator.sample(paths, len(paths)):
        source = path.read_text(encoding="utf-8")
        edits = list(list_edits(path, root))
        fitting = (e for e in generator.sample(edits, len(edits)) if e.fits(source))
        edit = next(fitting, None)
        if edit is not None:
            yield edit


@cache
def read_tests(root: Path) -> dict[str, str]:
    """Texts of all test files."""
    paths = sorted((root / "tests").rglob("test_*.py"))
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def list_tests(root: Path, file: str) -> tuple[str, ...]:
    """Test files named after a module, or else those that import it."""
    module = file.removesuffix(".py").replace("/", ".")
    texts = read_tests(root)
    named = tuple(test for test in texts if test.endswith(f"/test_{Path(file).name}"))
    return named or tuple(test for test, text in texts.items() if f"{module} import" in text)
