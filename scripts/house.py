"""Measures of style and size of the code, compared with the limits in pyproject.toml.

    python -m scripts.house    # part of make lint: exit code 1 above a limit

Limits are in ``[tool.house]``.  Rates are those of the worst of the four packages:

- ``participle_percent``: functions named by a bare participle, per 100
- ``doc_starts_percent``: docstrings that begin with a word of ``STARTS``, per 100
- ``pronouns_per_1000``: pronouns as variables, per 1,000 assignments
- ``parallel_per_1000``: assignments of several values, per 1,000 lines of code
- ``odd_*`` and ``stiff_*``: unnatural phrases per 1,000 words (``scripts.house_texts``)
- ``fmt_skip``: lines exempt from the formatter

Measures of ``runner`` and ``components``:

- ``nodes_per_code_line``: nodes of the syntax tree per line that is not a docstring, comment or blank
- ``eight_positional``: calls with eight or more positional arguments
- ``twelve_arguments``: functions with twelve or more
- ``complex_over_15``, ``complex_over_20``: functions with a complexity (branches, loops, conditions) above it
- ``protocols``: classes that derive from Protocol
- ``files_over_260``: files with more lines
- ``nodes``, and ``nodes_runner``, ``nodes_scripts``, ``nodes_tests`` of one package: size of the syntax
  trees, without the marks Load, Store and Del
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.house_texts import Texts, list_docstrings, rate_phrases, read_pages, read_texts

ROOT = Path(__file__).parent.parent
PACKAGES = ("runner", "components", "scripts", "tests")
STARTS = ("Of", "What", "Whether", "Where", "Those", "Whoever", "Whatever")
PARTICIPLE = re.compile(
    "[a-z]+ed|made|kept|held|drawn|chosen|found|told|taken|given|laid|known|seen|built|begun|gone"
    "|left|said|thrown|shown|written|bound|grown|spent|sent|lost|won|met|paid|sought|brought"
)
NO_PARTICIPLES = {
    *("embed", "exceed", "feed", "fixed", "mixed", "need", "proceed", "read", "seed", "shared"),
    *("shed", "speed", "spread", "weighed"),
}
PRONOUNS = {
    *(
        "found",
        "told",
        "said",
        "seen",
        "known",
        "at",
        "of",
        "own",
        "there",
        "how",
        "left",
        "before",
    ),
    *("moved", "going", "here", "one", "it"),
}
RATES = (
    ("participle_percent", "participles", "functions", 100),
    ("doc_starts_percent", "starts", "docstrings", 100),
    ("pronouns_per_1000", "pronouns", "stores", 1000),
    ("parallel_per_1000", "parallel", "code_lines", 1000),
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


def is_protocol(node: ast.ClassDef) -> bool:
    """True for a class statement with ``Protocol`` or ``Protocol[...]`` among its bases."""
    return any(ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases)


def is_parallel(node: ast.Assign) -> bool:
    """True for ``a, b = c, d``."""
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def count_node(node: ast.AST, counts: Counter[str]) -> None:
    match node:
        case ast.FunctionDef():
            count_function(node, counts)
        case ast.ClassDef():
            counts["protocols"] += is_protocol(node)
        case ast.Call():
            counts["eight_positional"] += len(node.args) >= 8
        case ast.Assign():
            counts["parallel"] += is_parallel(node)
        case ast.Name(ctx=ast.Store()):
            counts["stores"] += 1
            counts["pronouns"] += node.id in PRONOUNS
        case ast.expr_context():
            return
    counts["nodes"] += 1


def count_file(source: str, tree: ast.Module) -> Counter[str]:
    """Counts in one file."""
    counts = Counter[str](
        files_over_260=source.count("\n") > 260, fmt_skip=source.count("fmt: skip")
    )
    inside: set[int] = set()
    for text, statement in list_docstrings(tree):
        inside |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
        counts["docstrings"] += 1
        counts["starts"] += text.split()[0] in STARTS
    for node in ast.walk(tree):
        count_node(node, counts)
    for number, line in enumerate(source.split("\n"), 1):
        code = line.strip()
        counts["code_lines"] += bool(code) and number not in inside and not code.startswith("#")
    return counts


def measure_package(package: str) -> tuple[Counter[str], Texts]:
    """Counts of a package, and its texts by kind."""
    counts = Counter[str]()
    texts: Texts = {}
    for path in (ROOT / package).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        counts += count_file(source, tree)
        for kind, found in read_texts(source, tree).items():
            texts.setdefault(kind, []).extend(found)
    return counts, texts


def find_worst(rates: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Largest value of each rate."""
    worst: dict[str, float] = {}
    for each in rates:
        worst |= {name: max(rate, worst.get(name, 0)) for name, rate in each.items()}
    return worst


def measure() -> dict[str, float]:
    """All measures by name."""
    packages = {package: measure_package(package) for package in PACKAGES}
    rates = [rate_phrases(texts) for _, texts in packages.values()]
    rates += [
        {name: unit * counts[part] / counts[whole] for name, part, whole, unit in RATES}
        for counts, _ in packages.values()
    ]
    product = packages["runner"][0] + packages["components"][0]
    sizes = {f"nodes_{package}": counts["nodes"] for package, (counts, _) in packages.items()}
    skips = sum(counts["fmt_skip"] for counts, _ in packages.values())
    own_rates = {"nodes_per_code_line": product["nodes"] / product["code_lines"]}
    worst = find_worst([*rates, rate_phrases(read_pages(ROOT))])
    return {**product, **worst, **sizes, **own_rates, "fmt_skip": skips}


def main() -> bool:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    measures = measure()
    above = 0
    for name, bar in settings["tool"]["house"].items():
        value = measures.get(name, 0)
        is_above = value > bar
        above += is_above
        print(f"{name:22} {value:12,.2f}  bar {bar:,}{'  ABOVE' if is_above else ''}")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
