"""Families of components, i.e. the folders of their files."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import catalogue
from runner.catalogue.families import describe_folder


def family_of(entry: ClassDeclaration) -> Path:
    """Family of a component, the folder of its file."""
    return entry.file.resolve().parent


@cache
def families(role: str) -> dict[Path, list[ClassDeclaration]]:
    """Components of a role by family, families by title."""
    by_family: dict[Path, list[ClassDeclaration]] = {}
    for entry in catalogue(role):
        by_family.setdefault(family_of(entry), []).append(entry)
    return dict(sorted(by_family.items(), key=lambda item: family_title(item[0]).lower()))


def family_title(folder: Path) -> str:
    """Title of a family."""
    return describe_folder(folder).get("title", folder.name.replace("_", " ").capitalize())


@cache
def family_sentence(folder: Path) -> str:
    """First sentence of the docstring of a family's package."""
    init = folder / "__init__.py"
    text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) if init.exists() else ""
    return re.split(r"(?<=\.)\s", text or "")[0]
