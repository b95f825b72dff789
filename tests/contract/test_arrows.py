"""Imports run one way, nothing is asked for that no contract promises, and rooms stay small."""

from __future__ import annotations

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# Each room of components imports those before it alone.
ORDER = ["trouble", "old_names", "memory", "registry", "maths", "contracts", "posteriors", "metrics", "figures", "problems",
         "blocks", "models", "datasets", "attackers", "gradients", "inference", "evaluation"]  # fmt: skip
ROOM = 16  # modules in a folder, its __init__ apart


def modules(package: str) -> dict[str, Path]:
    """Dotted name -> file of every module."""
    out = {}
    for path in (ROOT / package).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of this project that a file imports, wherever in it."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            out |= {name for name in below if name in known} or {node.module}
            if any(name not in known for name in below):
                out.add(node.module)
    return {name for name in out if name in known}


def test_rooms_of_components_import_downwards():
    known = modules("components")
    wrong = []
    for name, path in known.items():
        room = name.split(".")[1] if "." in name else ""
        for other in imported(path, known):
            below = other.split(".")[1] if "." in other else ""
            if room and below and below != room and ORDER.index(below) > ORDER.index(room):
                wrong.append(f"{name} -> {other}")
    assert not wrong, "\n".join(wrong)


def test_no_circles():
    for package in ("components", "runner"):
        known = modules(package)
        # A package's __init__ stands for what it re-exports; importing one of its modules runs it, which is no circle.
        graph = {name: imported(path, known) - {name} for name, path in known.items()}
        TopologicalSorter(graph).prepare()


def test_components_never_import_runner_and_maths_nothing_else():
    for path in (ROOT / "components").rglob("*.py"):
        imports = re.findall(r"^\s*(?:from|import) (\w+(?:\.\w+)*)", path.read_text(), re.M)
        assert not [m for m in imports if m.split(".")[0] == "runner"], path
        if path.parent.name == "maths":
            allowed = ("components.maths", "components.trouble")
            assert not [
                m for m in imports if m.startswith("components.") and not m.startswith(allowed)
            ], path


def test_nothing_is_asked_for_by_a_literal_name():
    asked = re.compile(r"\b(getattr|hasattr)\([^,()]+, *[\"']")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in ("components", "runner")
        for path in sorted((ROOT / package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asked.search(line)
    ]
    assert not found, "\n".join(found)


def test_a_room_holds_about_fifteen_files_each_with_a_sentence():
    for package in ("components", "runner"):
        for folder in {path.parent for path in (ROOT / package).rglob("*.py")}:
            files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]

            assert len(files) <= ROOM, f"{folder}: {len(files)} modules"
            assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), (
                f"{folder} does not say what it holds"
            )


def test_no_two_classes_share_a_name():
    names = Counter(
        node.name
        for package in ("components", "runner")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in names.items() if n > 1] == []


def test_no_drawers():
    names = {p.stem for folder in ("runner", "components") for p in (ROOT / folder).rglob("*.py")}
    assert not names & {"utils", "util", "helpers", "helper", "misc", "common"}
