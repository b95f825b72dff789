"""The page of the site with the contracts of components, for authors of plug-ins.

Each protocol is printed literally from ``components/contracts``, with the components that offer,
require or provide it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Set
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from components import registry
from components.contracts.capabilities import CAPABILITIES, SYSTEMS
from components.contracts.plugins.protocols import to_word
from components.contracts.posteriors import POSTERIORS
from scripts.pages import render

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = ROOT / "components" / "contracts"
SIMULATION = {
    "Simulated by": ("dataset", ["simulates"]),
    "Assumed by": ("model", ["requires.simulated"]),
}
NEEDS = [
    f"requires.{name}" for name in ("capabilities", "capabilities_by_kind", "alternatives_by_kind")
]
# verb -> role, and facts of its classes with protocols
RELATIONS = {
    "problems": SIMULATION,
    "capabilities": {
        "Offered by": ("model", ["offers"]),
        "Needed by": ("inference", NEEDS),
        **SIMULATION,
    },
    "posteriors": {"Given by": ("inference", ["provides"])},
}
PROTOCOLS = {cls.__name__: cls for cls in CAPABILITIES | SYSTEMS | POSTERIORS}
ROLES = ("component", "problem", "dataset", "model", "inference", "gradient", "block")
MODULES = {
    "roles": ("requirements", *(f"roles/{name}" for name in ROLES), "attackers", "opponents"),
    "problems": ("problems", "sequences", "games"),
    "capabilities": ("capabilities/*",),
    "posteriors": [f"posteriors/{name}" for name in ("labels", "rows", "series", "play")],
    "victim": ("victim",),
    "checks": ("checks",),
    "streams": ("streams",),
}


class Protocol(NamedTuple):
    """A class of the contracts on the page."""

    name: str
    text: str  # docstring
    source: str  # source without the docstring
    used: type | None  # the class, if used in declarations of components
    word: str  # word for the class in messages


def read_protocols(path: Path) -> Iterator[Protocol]:
    """Classes of a module in order."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name != "Setting":
            doc = ast.get_docstring(node) or ""
            first = node.body[0]
            start = first.end_lineno or 0 if doc else find_start(first) - 1
            source = "\n".join(text.splitlines()[start : node.end_lineno])
            # Markdown renders an example as code only after an empty line
            doc = doc.replace("Example:\n    >>>", "Example:\n\n    >>>")
            used = PROTOCOLS.get(node.name)
            word = to_word(used) if used else ""
            yield Protocol(node.name, doc, textwrap.dedent(source).strip(), used, word)


def find_start(node: ast.stmt) -> int:
    """First line of a statement, including decorators."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min(each.lineno for each in (node, *decorators))


def list_users(role: str, facts: Iterable[str], protocol: type | None) -> list[str]:
    """Components of a role with a class fact that includes a protocol."""
    return [
        name
        for name in registry.names(role)
        if any(protocol in read_fact(role, name, fact) for fact in facts)
    ]


def read_fact(role: str, name: str, fact: str) -> Set[type]:
    """Protocols in a fact of a component's class, for all kinds of problems."""
    value = attrgetter(fact)(registry.get(role, name))
    return frozenset().union(*value.values()) if isinstance(value, dict) else value


def describe_users(section: str, protocol: Protocol) -> str:
    """``Offered by: bnn, mlp. Needed by: sgld.``"""
    users = {
        verb: list_users(role, facts, protocol.used)
        for verb, (role, facts) in RELATIONS.get(section, {}).items()
    }
    return " ".join(f"{verb}: {', '.join(names)}." for verb, names in users.items() if names)


def read_section(section: str) -> Iterator[tuple[Protocol, str]]:
    """Protocols of a section with their users."""
    for pattern in MODULES[section]:
        for path in sorted(CONTRACTS.glob(f"{pattern}.py")):
            for protocol in read_protocols(path):
                yield protocol, describe_users(section, protocol)


def page() -> str:
    """Text of the page."""
    sections = {section: list(read_section(section)) for section in MODULES}
    return render("contracts", **sections).rstrip() + "\n"
