"""Packages, paths and names in docs/architecture.md exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from test_arrows import ORDER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = re.findall(r"`((?:runner|components|conf|tests|docs)/[\w./]*)`", PAGE)
WALK = re.compile(r"^\d\. `(\S+\.py)`: (.*)", re.M)  # a step: a file and its function


def defined_names(path: Path) -> set[str]:
    """Functions, classes and methods of a module; methods with and without their class."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [x.name for x in node.body if isinstance(x, ast.FunctionDef)]
            names |= {f"{node.name}.{name}" for name in methods}
    return names


def list_rooms(package: str) -> list[str]:
    """Subpackages in the listing of a package, in order."""
    listing = PAGE.partition(f"    {package}/ ")[2].partition("\n\n    components/")[0]
    lines = re.findall(r"^      (\w+(?:, \w+)*)  ", listing.partition("\n\n`")[0], re.M)
    return [room for line in lines for room in line.split(", ")]


@pytest.mark.parametrize("path", sorted(set(PATHS)))
def test_architecture_paths_exist(path):
    assert (ROOT / path).exists()


def test_architecture_walks_name_five_defining_files():
    walk = WALK.findall(PAGE)
    assert len(walk) == 10
    for path, text in walk:
        names = re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)`", text)
        assert names[0] in defined_names(ROOT / path), path


@pytest.mark.parametrize("package", ["runner", "components"])
def test_architecture_layers_are_folders_in_import_order(package):
    rooms = list_rooms(package)
    folders = [path.name for path in (ROOT / package).iterdir() if (path / "__init__.py").is_file()]
    assert sorted(rooms) == sorted([*folders, *(["errors"] if package == "runner" else [])])
    order = ORDER[package]
    assert rooms == sorted(rooms, key=order.index)
