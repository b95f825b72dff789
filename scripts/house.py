"""Measures of style and size of the code, compared with the limits in pyproject.toml.

    python -m scripts.house    # part of make lint: exit code 1 above a limit

Limits are in ``[tool.house]``.  The measures cover all functions, classes and modules:

- ``participle_percent``: functions named by a bare participle, per 100
- ``stiff_words_per_1000``: words of ``STIFF`` in docstrings, per 1,000 words
- ``doc_starts_percent``: docstrings that begin with a word of ``STARTS``, per 100
- ``nodes_per_code_line``: nodes of the syntax tree per line that is not a docstring, comment or blank
- ``eight_positional``: calls with eight or more positional arguments
- ``twelve_arguments``: functions with twelve or more
- ``complex_over_15``, ``complex_over_20``: functions with a complexity (branches, loops, conditions) above it
- ``fmt_skip``: lines exempt from the formatter
- ``protocols``: classes that derive from Protocol
- ``nodes``, and ``nodes_runner``, ``nodes_scripts``, ``nodes_tests`` of one package: size of the syntax
  trees, without the marks Load, Store and Del
- ``files_over_260``: files with more lines
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("runner", "components")
SIZED = (*PACKAGES, "scripts", "tests")
STIFF = (
    "alone",
    "beside",
    "whatever",
    "of which",
    "of what",
    "that of",
    "those of",
    "whose",
    "stands",
    "is none",
    "at once",
)
STARTS = {"Of", "What", "Whether", "Where", "Those", "Whoever", "Whatever"}
PARTICIPLE = re.compile(
    "[a-z]+ed|made|kept|held|drawn|chosen|found|told|taken|given|laid|known|seen|built|begun|gone"
    "|left|said|thrown|shown|written|bound|grown|spent|sent|lost|won|met|paid|sought|brought"
)
NO_PARTICIPLES = {
    *("embed", "exceed", "feed", "fixed", "mixed", "need", "proceed", "read", "seed", "shared"),
    *("shed", "speed", "spread", "weighed"),
}
RATES = (
    ("participle_percent", "participles", "functions", 100),
    ("stiff_words_per_1000", "stiff", "words", 1000),
    ("doc_starts_percent", "starts", "docstrings", 100),
    ("nodes_per_code_line", "nodes", "code_lines", 1),
)
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.comprehension,
    ast.With,
)


def branch_count(node: ast.AST) -> int:
    """Number of branches of a single node."""
    count = isinstance(node, BRANCHES) + len(getattr(node, "ifs", ()))
    if isinstance(node, ast.BoolOp):
        count += len(node.values) - 1
    return count


def complexity(function: ast.FunctionDef) -> int:
    """One plus the number of branches of a function and its nested functions."""
    return 1 + sum(branch_count(node) for node in ast.walk(function))


def count_function(function: ast.FunctionDef, counts: Counter[str]) -> None:
    name = function.name.strip("_")
    branches = complexity(function)
    arguments = len(function.args.args) + len(function.args.kwonlyargs)
    counts["functions"] += 1
    counts["participles"] += bool(PARTICIPLE.fullmatch(name)) and name not in NO_PARTICIPLES
    counts["complex_over_15"] += branches > 15
    counts["complex_over_20"] += branches > 20
    counts["twelve_arguments"] += arguments >= 12


def docstrings(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Docstrings with their statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (
            text := ast.get_docstring(node)
        ):
            yield text, node.body[0]


def is_protocol(node: ast.AST) -> bool:
    """True for a class statement with ``Protocol`` or ``Protocol[...]`` among its bases."""
    return isinstance(node, ast.ClassDef) and any(
        ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases
    )


def count_file(source: str, tree: ast.Module, counts: Counter[str]) -> None:
    inside: set[int] = set()
    for text, statement in docstrings(tree):
        inside |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
        words = text.lower()
        counts["docstrings"] += 1
        counts["words"] += len(re.findall(r"[a-z]+", words))
        counts["stiff"] += sum(len(re.findall(rf"\b{word}\b", words)) for word in STIFF)
        counts["starts"] += text.split()[0] in STARTS
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            count_function(node, counts)
        elif isinstance(node, ast.ClassDef):
            counts["protocols"] += is_protocol(node)
        elif isinstance(node, ast.Call):
            counts["eight_positional"] += len(node.args) >= 8
    for number, line in enumerate(source.split("\n"), 1):
        code = line.strip()
        counts["code_lines"] += bool(code) and number not in inside and not code.startswith("#")
    counts["fmt_skip"] += source.count("fmt: skip")


def measure() -> Counter[str]:
    """All measures by name."""
    counts = Counter[str]()
    for package in SIZED:
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            nodes = sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))
            counts[f"nodes_{package}"] += nodes
            if package in PACKAGES:
                counts["nodes"] += nodes
                counts["files_over_260"] += source.count("\n") > 260
                count_file(source, tree, counts)
    for name, part, denominator, unit in RATES:
        counts[name] = unit * counts[part] / counts[denominator]
    return counts


def main() -> bool:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    counts = measure()
    above = 0
    for name, bar in settings["tool"]["house"].items():
        is_above = counts[name] > bar
        above += is_above
        print(f"{name:22} {counts[name]:12,.2f}  bar {bar:,}{'  ABOVE' if is_above else ''}")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
