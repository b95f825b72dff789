"""Imports run in one direction, requirements live in contracts, and packages stay small."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# A package imports only packages before it in this list.
ORDER = {
    "components": [
        "errors",
        "memory",
        "registry",
        "maths",
        "contracts",
        "metrics",
        "posteriors",
        "figures",
        "problems",
        "models",
        "datasets",
        "attackers",
        "gradients",
        "inference",
        "games",
        "topics",
        "series",
        "evaluation",
    ],
    "runner": [
        "errors",
        "disk",
        "statistics",
        "terminal",
        "catalogue",
        "compose",
        "record",
        "tracking",
        "execution",
        "conformance",
        "sweep",
        "system",
        "commands",
        "study",
        "report",
        "arena",
        "python",
    ],
}
ARROWS = 97  # maximum number of pairs of packages with an import between them
ROOM = 16  # modules in a folder, without its __init__


@cache
def modules(package: str) -> dict[str, Path]:
    """Dotted name -> file of every module except ``__main__``, which belongs to no package."""
    out = {}
    for path in {*(ROOT / package).rglob("*.py")} - {ROOT / package / "__main__.py"}:
        parts = path.relative_to(ROOT).with_suffix("").parts
        out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [n for n in ast.walk(parse(path)) if isinstance(n, ast.Import | ast.ImportFrom)]


def find_imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of this project that a file imports, anywhere in the file."""
    out: set[str] = set()
    for node in import_nodes(path):
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            out |= {name for name in below if name in known} or {node.module}
            if any(name not in known for name in below):
                out.add(node.module)
    return {name for name in out if name in known}


@cache
def arrows(package: str) -> dict[tuple[str, str], list[str]]:
    """(importing package, imported package) -> the imports."""
    module_names = modules(package)
    imports: dict[tuple[str, str], list[str]] = {}
    for name, path in module_names.items():
        for other in find_imports(path, module_names):
            rooms = tuple([*n.split("."), ""][1] for n in (name, other))
            if all(rooms) and rooms[0] != rooms[1]:
                imports.setdefault(rooms, []).append(f"{name} -> {other}")
    return imports


@pytest.mark.parametrize("package", ORDER)
def test_layers_import_downwards(package):
    order = ORDER[package]
    upwards = [
        line
        for (room, other), lines in arrows(package).items()
        if order.index(other) > order.index(room)
        for line in lines
    ]
    assert not upwards, "\n".join(upwards)
    assert len(arrows(package)) <= ARROWS


def test_imports_are_acyclic():
    for package in ("components", "runner"):
        module_names = modules(package)
        # A package's __init__ represents its re-exports; importing one of its modules runs it,
        # which does not count as a cycle.
        graph = {
            name: find_imports(path, module_names) - {name} for name, path in module_names.items()
        }
        TopologicalSorter(graph).prepare()


def test_components_and_maths_import_only_lower_layers():
    for path in (ROOT / "components").rglob("*.py"):
        imports = re.findall(r"^\s*(?:from|import) (\w+(?:\.\w+)*)", path.read_text(), re.M)
        assert not [m for m in imports if m.split(".")[0] == "runner"], path
        if path.parent == ROOT / "components" / "maths":
            allowed = ("components.maths", "components.errors")
            assert not [
                m for m in imports if m.startswith("components.") and not m.startswith(allowed)
            ], path


def test_getattr_has_no_literal_names():
    asked = re.compile(r"\b(getattr|hasattr)\([^,()]+, *[\"']")
    violations = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in ("components", "runner")
        for path in sorted((ROOT / package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asked.search(line)
    ]
    assert not violations, "\n".join(violations)


def test_folders_hold_few_files_with_docstrings():
    for package in ("components", "runner"):
        for folder in {path.parent for path in (ROOT / package).rglob("*.py")}:
            files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]

            assert len(files) <= ROOM, f"{folder}: {len(files)} modules"
            assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), (
                f"{folder} does not describe its contents"
            )


def test_class_names_are_unique():
    names = Counter(
        node.name
        for package in ("components", "runner")
        for path in (ROOT / package).rglob("*.py")
        for node in parse(path).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in names.items() if n > 1] == []


def test_modules_have_specific_names():
    names = {p.stem for folder in ("runner", "components") for p in (ROOT / folder).rglob("*.py")}
    assert not names & {"utils", "util", "helpers", "helper", "misc", "common"}
