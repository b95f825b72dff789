"""Description of an imported component class: types of its keys in words, their comments, and the
class variables that decide compatibility."""

from __future__ import annotations

import builtins
import inspect
import sys
import types
import typing
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

import components
from components import registry
from components.contracts.attackers import Evasion
from components.contracts.plugins.protocols import to_word
from components.contracts.roles import Component, Dataset
from components.evaluation.security.threat import Grid
from runner.catalogue.class_declaration import ClassDeclaration

ROOT = Path(components.__path__[0])
# class variables that decide compatibility or are displayed
FACTS = (
    "kind",
    "label_kind",
    "values",
    "domain",
    "simulates",
    "offers",
    "offers_where",
    "provides",
    "action",
    "own_file",
)
# fields of ``requires`` that decide compatibility
NEEDS = ("kinds", "targets", "values", "domains", "refused_traits", "required_traits", "simulated",
         "capabilities", "capabilities_by_kind", "alternatives_by_kind")  # fmt: skip
_TYPE_WORDS = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "true or false",
    types.NoneType: "null",
    Any: "anything",
}
_BOUND_SIGNS = {"gt": "> {}", "ge": "≥ {}", "lt": "< {}", "le": "≤ {}", "min_length": "at least {} of them",
                "max_length": "at most {} of them", "pattern": "matching {}"}  # fmt: skip


def words(annotation: Any, limits: Iterable[Any] = ()) -> str:
    """Describe a type in words: ``Annotated[float, Field(gt=0, le=1)]`` is "number > 0, ≤ 1"."""
    base = _describe_type(annotation)
    bounds = [
        sign.format(value)
        for limit in limits
        for item in (limit.metadata if isinstance(limit, FieldInfo) else [limit])
        for name, sign in _BOUND_SIGNS.items()
        if (value := getattr(item, name, None)) is not None
    ]
    many = "," * (base.startswith("list of ") and bool(bounds))
    return f"{base}{many} {', '.join(bounds)}".strip()


def _describe_type(annotation: Any) -> str:
    if annotation in _TYPE_WORDS:
        return _TYPE_WORDS[annotation]
    inner = get_args(annotation)
    match get_origin(annotation):
        case typing.Annotated:
            return words(inner[0], inner[1:])
        case typing.Literal:
            return " | ".join(map(str, inner))
        case typing.Union | types.UnionType:  # base classes of attackers share a role, listed once
            return " or ".join(dict.fromkeys(" or ".join(map(words, inner)).split(" or ")))
        case builtins.list | builtins.tuple:
            return f"list of {words(inner[0])}"
        case builtins.dict:
            return f"mapping to {words(inner[-1])}"
    return _describe_class(annotation)


def _describe_class(annotation: Any) -> str:
    if role := nested_role(annotation):
        return f"name of {'an' if role[0] in 'aeiou' else 'a'} {role}, or {{name: …, its keys}}"
    if not isinstance(annotation, type):
        return str(annotation)
    if issubclass(annotation, BaseModel):
        return f"{{{', '.join(f'{key}: …' for key in annotation.model_fields)}}}"
    return annotation.__name__


_ROLE_OF_BASE = {base: role for role, facts in registry.ROLES.items() for base in facts.bases}


def nested_role(annotation: Any) -> str | None:
    """Role of a base class, of a union or list of base classes, or of a generic one.

    An example of a generic base class is ``Model[P, M]``.
    """
    bases = annotation.__mro__ if isinstance(annotation, type) else ()
    ours = [base for base in bases if base.__module__.startswith("components.contracts.")]
    roles = [_ROLE_OF_BASE.get(base.__name__) for base in ours]
    return next((r for r in [*roles, *map(nested_role, get_args(annotation))] if r), None)


@cache
def nested_roles(cls: type[BaseModel]) -> dict[str, str]:
    """Keys of a class that hold components, with their roles."""
    roles = {key: nested_role(field.annotation) for key, field in cls.model_fields.items()}
    return {key: role for key, role in roles.items() if role}


def describe_class(cls: type[BaseModel], role: str = "", name: str = "") -> ClassDeclaration:
    """Declarations of an imported class and its base classes."""
    file = Path(vars(sys.modules[cls.__module__]).get("__file__") or "") if role else Path()
    file = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    fields = {name: words(key.annotation, key.metadata) for name, key in cls.model_fields.items()}
    needs: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    if issubclass(cls, Component):
        keys = {
            name: _to_lists(getattr(cls, name)) for name in ("inherited_keys", "imports", "reads")
        }
        needs = {name: _to_lists(getattr(cls.requires, name)) for name in NEEDS}
        if issubclass(cls, Evasion) and cls.domain is not None:
            needs["domains"] = [cls.domain]
        for key in sorted(cls.threat_keys):
            eps = Grid.model_fields[key]
            fields[key] = words(eps.annotation, eps.metadata)
    fields.pop("name", None)
    comments: dict[str, str] = {}
    for base in reversed(cls.__mro__[: cls.__mro__.index(BaseModel)]):
        comments |= _read_comments(base)
    facts = {name: _to_lists(getattr(cls, name, None)) for name in FACTS}
    return ClassDeclaration(
        role=role,
        name=name,
        path=file.as_posix(),
        docstring=inspect.getdoc(cls) or "",
        fields=fields,
        nested_roles=nested_roles(cls),
        comments={name: text for name, text in comments.items() if name in fields},
        facts={name: value for name, value in facts.items() if value is not None},
        needs=needs,
        **keys,
        names_data=issubclass(cls, Dataset) and cls.identity is not Dataset.identity,
    )


@cache
def _read_comments(cls: type) -> dict[str, str]:
    """Comments on or directly above the lines of a class's own fields; empty without a source file."""
    try:
        lines = inspect.getsource(cls).splitlines()
    except (OSError, TypeError):
        return {}
    comments: dict[str, str] = {}
    above: list[str] = []
    names = vars(cls).get("__annotations__", {})
    for line in lines:
        code, _, comment = map(str.strip, line.partition("# "))
        name = code.partition(":")[0]
        if name in names:
            comments[name] = " ".join(filter(None, [*above, comment]))
        above = [*above, comment] if not code else []
    return {name: text for name, text in comments.items() if text}


def _to_lists(value: Any) -> Any:
    """Convert a class variable to its form in the index."""
    if isinstance(value, dict):
        return dict(sorted((_to_lists(key), _to_lists(inner)) for key, inner in value.items()))
    if isinstance(value, set | frozenset):
        return sorted(map(_to_lists, value))
    if isinstance(value, type):
        return to_word(value)
    return None if callable(value) else value  # a method of the same name
