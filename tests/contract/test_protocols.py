"""Protocols are contracts of several classes, or of classes in plug-ins."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from components.contracts.capabilities import CAPABILITIES, SYSTEMS
from components.contracts.posteriors import POSTERIORS
from scripts.house import is_protocol

ROOT = Path(__file__).parent.parent.parent
MOST = 130  # protocols in components and runner


def sources() -> dict[Path, str]:
    """Text of every module, by file."""
    return {
        path: path.read_text(encoding="utf-8")
        for package in ("components", "runner")
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def members(node: ast.ClassDef) -> set[str]:
    """Names defined in the class itself."""
    names = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    fields = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
    return names | {field.id for field in fields if isinstance(field, ast.Name)}


def test_protocols_have_several_implementers_or_users():
    texts = sources()
    classes = [
        (path, node)
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    ]
    protocols = [(path, node) for path, node in classes if is_protocol(node)]
    assert len(protocols) <= MOST
    # a contract: documented for plug-ins on the page of contracts, or named in a declaration
    named = {cls.__name__ for cls in CAPABILITIES | SYSTEMS | POSTERIORS}
    lonely = []
    for path, node in protocols:
        if node.name in named or "contracts" in path.parts:
            continue
        implementers = [
            other.name
            for _, other in classes
            if not is_protocol(other) and members(other) and members(node) <= members(other)
        ]
        word = re.compile(rf"\b{node.name}\b")
        users = [file for file, text in texts.items() if file != path and word.search(text)]
        if len(implementers) == 1 and len(users) <= 1:
            lonely.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert lonely == []
