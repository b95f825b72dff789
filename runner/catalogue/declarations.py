"""Declarations of a component's class (types, constraints, what it fits).

They are read from the source text, so that torch is not imported.
"""

from __future__ import annotations

import ast
import tokenize
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import components
import runner
from components import registry
from components.contracts.requirements import Requirements

SETTINGS = Path(runner.__path__[0]) / "compose" / "settings.py"  # the class of the run-level keys
# the class of the keys of a threat
THREAT = Path(components.__path__[0]) / "evaluation" / "security" / "threat.py"
_PACKAGE_FOLDERS = {"components": Path(components.__path__[0]), "runner": Path(runner.__path__[0])}
# a key may hold a component
_ROLES = {base: role for role, facts in registry.ROLES.items() for base in facts.bases}
_CONTRACTS = {
    _PACKAGE_FOLDERS["components"] / "contracts" / f"{facts.contract}.py"
    for facts in registry.ROLES.values()
}
_TYPE_WORDS = {
    "int": "integer",
    "float": "number",
    "str": "text",
    "bool": "true or false",
    "None": "null",
    "Any": "anything",
    **{
        base: f"name of {'an' if role[0] in 'aeiou' else 'a'} {role}, or {{name: …, its keys}}"
        for base, role in _ROLES.items()
    },
    "PositiveInt": "integer > 0",
    "NonNegativeInt": "integer ≥ 0",
    "PositiveFloat": "number > 0",
    "NonNegativeFloat": "number ≥ 0",
}
_BOUND_SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


@dataclass
class ClassDeclaration:
    """Class-level facts, methods, docstring and field positions of a class.

    Facts about the fields are read on demand: a list of compatible components needs only
    the class-level facts.
    """

    places: dict[str, tuple[ast.AnnAssign, Path]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    # fields of ``requires`` that it and its bases give; None: computed
    requirements: dict[str, Any] = field(default_factory=dict)
    # its own methods and the methods of bases that are not its role's
    methods: set[str] = field(default_factory=set)
    docstring: str = ""

    @cached_property
    def requires(self) -> Requirements:
        """Requirements as far as the text gives them; what is computed has its default."""
        given = {name: value for name, value in self.requirements.items() if value is not None}
        return Requirements(**given)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Kinds of problems that it poses or is for."""
        kind = self.facts.get("kind")
        return frozenset({kind}) if kind else self.requires.kinds

    @property
    def pairing_words(self) -> dict[str, Any]:
        """Words that say what it fits, by what they are called where they are shown."""
        return {
            "kind": self.facts.get("kind"),
            "target": self.facts.get("target"),
            "kinds": self.requires.kinds,
            "targets": self.requires.targets,
            "needs": self.requires.capabilities,
            "offers": self.facts.get("offers"),
            "gives": self.facts.get("provides"),
            "action": self.facts.get("action"),
        }

    @cached_property
    def fields(self) -> dict[str, str]:
        """Types of the fields, in words."""
        types = {name: words(node.annotation, path) for name, (node, path) in self.places.items()}
        if keys := self.facts.get("threat_keys"):
            threat = read_declaration("Grid", THREAT).fields
            types |= {key: threat[key] for key in keys}
        return types

    @cached_property
    def holds(self) -> dict[str, str]:
        """Roles of the fields that hold components, by field."""
        roles = {
            name: _nested_role(node.annotation, path) for name, (node, path) in self.places.items()
        }
        return {name: role for name, role in roles.items() if role}

    @cached_property
    def comments(self) -> dict[str, str]:
        """Comments on the same line as the fields or above them, for fields that have one."""
        texts = {name: _comment(node, path) for name, (node, path) in self.places.items()}
        return {name: comment for name, comment in texts.items() if comment}


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _comments(path: Path) -> dict[int, tuple[str, bool]]:
    """Comment of each line of a file, and whether it has the line to itself."""
    comments = {}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                text = token.string.lstrip("#").strip()
                comments[token.start[0]] = (text, not token.line[: token.start[1]].strip())
    return comments


def _comment(node: ast.stmt, path: Path) -> str:
    """Comment on a field's line and directly above it."""
    comments = _comments(path)
    words: list[str] = []
    line = node.lineno - 1
    while line in comments and comments[line][1]:
        words.insert(0, comments[line][0])
        line -= 1
    if node.end_lineno in comments:
        words.append(comments[node.end_lineno][0])
    return " ".join(words)


def _module_file(name: str) -> Path | None:
    """File of a module of this project (None: somebody else's)."""
    first, *rest = name.split(".")
    if first not in _PACKAGE_FOLDERS:
        return None
    path = _PACKAGE_FOLDERS[first].joinpath(*rest)
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@cache
def _find(name: str, path: Path) -> tuple[Any, Path] | None:
    """The class or the assignment that gives a name its meaning in a module, followed through its
    imports."""
    for node in _parse(path).body:
        if name in _defined_names(node):
            return node, path
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name and (file := _module_file(node.module)):
                    return _find(alias.name, file)
    return None


def _defined_names(node: ast.stmt) -> list[str]:
    """Names to which a statement gives a class or a value."""
    if isinstance(node, ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return _names(node.target)
    return (
        [name for t in node.targets for name in _names(t)] if isinstance(node, ast.Assign) else []
    )


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Tuple):
        return [n.id for n in target.elts if isinstance(n, ast.Name)]
    return [target.id] if isinstance(target, ast.Name) else []


def _value(name: str, node: ast.stmt) -> ast.expr | None:
    """The expression assigned to a name, also in ``A, B = 1, 2``."""
    if isinstance(node, ast.AnnAssign):
        return node.value
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                return dict(zip(_names(target), node.value.elts, strict=False)).get(name)
        return node.value
    return None


def _constant(node: ast.expr, path: Path) -> str:
    """A bound in words: the number behind a module's constant."""
    if isinstance(node, ast.Name) and (definition := _find(node.id, path)):
        value = _value(node.id, definition[0])
        if value is not None:
            return _constant(value, definition[1])
    return ast.unparse(node)


def words(node: ast.expr, path: Path) -> str:
    """A type annotation in words: ``Annotated[float, Field(gt=0, le=1)]`` is "number > 0, ≤ 1"."""
    if isinstance(node, ast.Constant):
        return "null" if node.value is None else str(node.value)
    if isinstance(node, ast.Name):
        return _describe_name(node.id, path)
    if isinstance(node, ast.BinOp):  # the attackers' three bases are one role, listed once
        return " or ".join(
            dict.fromkeys(f"{words(node.left, path)} or {words(node.right, path)}".split(" or "))
        )
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _describe_generic(node.value.id, inner, path) or ast.unparse(node)
    return ast.unparse(node)


def _describe_name(name: str, path: Path) -> str:
    """The type behind a name, in words."""
    if name in _TYPE_WORDS:
        return _TYPE_WORDS[name]
    definition = _find(name, path)
    if definition and isinstance(definition[0], ast.ClassDef):  # a mapping with its own keys
        keys = ", ".join(f"{key}: …" for key in read_declaration(name, path).fields)
        return f"{{{keys}}}"
    value = _value(name, definition[0]) if definition else None
    return words(value, definition[1]) if definition and value is not None else name


def _describe_generic(outer: str, inner: list[ast.expr], path: Path) -> str | None:
    """A type with arguments, in words; None if it is not known here."""
    if outer in _ROLES:  # Model[Supervised, Network]
        return _TYPE_WORDS[outer]
    if outer == "Literal":
        return " | ".join(
            str(ast.literal_eval(n)) if isinstance(n, ast.Constant) else ast.unparse(n)
            for n in inner
        )
    if outer == "Annotated":
        return _annotation(inner, path)
    if outer == "Optional":
        return f"{words(inner[0], path)} or null"
    if outer in ("list", "tuple"):
        return f"list of {words(inner[0], path)}"
    return f"mapping to {words(inner[-1], path)}" if outer == "dict" else None


def _annotation(inner: list[ast.expr], path: Path) -> str:
    base = words(inner[0], path)
    limits = []
    for call in inner[1:]:
        for keyword in call.keywords if isinstance(call, ast.Call) else []:
            bound = _constant(keyword.value, path)
            if keyword.arg in _BOUND_SIGNS:
                limits.append(f"{_BOUND_SIGNS[keyword.arg]} {bound}")
            elif keyword.arg == "min_length":
                limits.append(f"at least {bound} of them")
            elif keyword.arg == "max_length":
                limits.append(f"at most {bound} of them")
            elif keyword.arg == "pattern":
                limits.append(f"matching {ast.literal_eval(keyword.value)}")
    many = base.startswith("list of ") and limits
    return f"{base}{', ' if many else ' '}{', '.join(limits)}".strip() if limits else base


def _nested_role(node: ast.expr, path: Path) -> str | None:
    """The role of the components that a key of this type holds, also several of them or none."""
    for name in (n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
        if name in _ROLES:
            return _ROLES[name]
        definition = _find(name, path)
        value = _value(name, definition[0]) if definition else None
        if definition and value is not None and (role := _nested_role(value, definition[1])):
            return role
    return None


def _fact(node: ast.expr, path: Path) -> Any:
    """A literal of a class, also behind a name, as part of a mapping or as a union of sets;
    ``frozenset({...})`` is its set; None when it is computed."""
    if isinstance(node, ast.Dict):  # of sets, by kind of problem
        pairs = zip(node.keys, node.values, strict=True)
        return {_fact(k, path): _fact(v, path) for k, v in pairs if k is not None}
    if isinstance(node, ast.Name) and (definition := _find(node.id, path)):
        value = _value(node.id, definition[0])
        return None if value is None else _fact(value, definition[1])
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):  # of another class
        return read_declaration(node.value.id, path).facts.get(node.attr)
    if isinstance(node, ast.Subscript) and isinstance(mapping := _fact(node.value, path), dict):
        return mapping.get(_fact(node.slice, path))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = _fact(node.left, path), _fact(node.right, path)
        return frozenset().union(*sides) if all(isinstance(s, frozenset) for s in sides) else None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "frozenset"
    ):
        return frozenset(ast.literal_eval(node.args[0])) if node.args else frozenset()
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _gather(name: str, path: Path, into: ClassDeclaration) -> None:
    definition = _find(name, path)
    if definition is None or not isinstance(definition[0], ast.ClassDef):
        return
    node, path = definition
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base  # Inference[LogJoint, …]
        if isinstance(base, ast.Name):
            _gather(base.id, path, into)
    into.docstring = ast.get_docstring(node) or into.docstring
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and path not in _CONTRACTS:
            into.methods.add(item.name)
        if given := _requirements(item, path):
            into.requirements |= given
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            _add_attribute(item.target.id, item, path, into)


def _add_attribute(name: str, item: ast.AnnAssign, path: Path, into: ClassDeclaration) -> None:
    """Add a class-level fact or a field to a declaration."""
    annotation = item.annotation
    outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    if isinstance(outer, ast.Name) and outer.id == "ClassVar":
        if item.value is not None:
            into.facts[name] = _fact(item.value, path)
    elif name not in ("name", "model_config") and not name.startswith("_"):
        into.places[name] = item, path


def _requirements(node: ast.stmt, path: Path) -> dict[str, Any]:
    """Fields that a statement ``requires = Requirements(...)`` gives."""
    call = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "Requirements":
        return {}
    return {keyword.arg or "": _fact(keyword.value, path) for keyword in call.keywords}


def read_declaration(class_name: str, path: Path) -> ClassDeclaration:
    """Fields, facts and docstring of a class in a file, including inherited ones."""
    out = ClassDeclaration()
    _gather(class_name, path, out)
    return out


def component_class(role: str, name: str, path: Path) -> str | None:
    """Name of the class that a file registers as ``role=name``."""
    for node in _parse(path).body:
        if isinstance(node, ast.ClassDef) and any(
            isinstance(d, ast.Call) and [_fact(a, path) for a in d.args] == [role, name]
            for d in node.decorator_list
        ):
            return node.name
    return None


def is_integer_type(kind: str) -> bool:
    """True if a field of this type (in words) holds integers and no other numbers."""
    return kind.startswith(("integer", "list of integer")) and "number" not in kind


def of_numbers(kind: str) -> bool:
    """True if a field of this type (in words) holds numbers and no user-defined text."""
    return ("number" in kind or "integer" in kind) and "text" not in kind and "anything" not in kind


@cache
def component_declaration(entry: registry.Entry) -> ClassDeclaration:
    """Declarations of the class of a component in the catalogue."""
    class_name = component_class(entry.role, entry.name, entry.file)
    return read_declaration(class_name, entry.file) if class_name else ClassDeclaration()
