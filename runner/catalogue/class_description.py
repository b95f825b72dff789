"""Description of a component class that is imported: types of its keys in words, their comments,
and the class variables by which it fits others."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from components.contracts.roles import Dataset
from components.evaluation.security.threat import Grid
from runner.catalogue.declarations import ClassDeclaration
from runner.compose.parts import nested_role, nested_roles

# class variables by which components fit each other, or are shown
FACTS = ("kind", "target", "values", "domain", "simulates", "offers", "offers_where", "provides", "action", "own_file",
         "inherited_keys", "imports", "reads")  # fmt: skip
# fields of ``requires`` that decide what fits
NEEDS = ("kinds", "targets", "values", "domains", "simulated", "capabilities", "capabilities_by_kind",
         "alternatives_by_kind")  # fmt: skip
_TYPE_WORDS = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "true or false",
    NoneType: "null",
    Any: "anything",
}
_BOUND_SIGNS = {"gt": "> {}", "ge": "≥ {}", "lt": "< {}", "le": "≤ {}", "min_length": "at least {} of them",
                "max_length": "at most {} of them", "pattern": "matching {}"}  # fmt: skip


# ---- types in words
# --------------------------------------------------------------------------------------------------
def words(annotation: Any, limits: Iterable[Any] = ()) -> str:
    """A type in words: ``Annotated[float, Field(gt=0, le=1)]`` is "number > 0, ≤ 1"."""
    base = _describe_type(annotation)
    bounds = [
        sign.format(value)
        for limit in limits
        for one in (limit.metadata if isinstance(limit, FieldInfo) else [limit])
        for name, sign in _BOUND_SIGNS.items()
        if (value := getattr(one, name, None)) is not None
    ]
    many = "," * (base.startswith("list of ") and bool(bounds))
    return f"{base}{many} {', '.join(bounds)}".strip()


def _describe_type(annotation: Any) -> str:
    outer, inner = get_origin(annotation), get_args(annotation)
    if annotation in _TYPE_WORDS:
        return _TYPE_WORDS[annotation]
    if outer is Annotated:
        return words(inner[0], inner[1:])
    if outer is Literal:
        return " | ".join(map(str, inner))
    if outer in (Union, UnionType):  # the attackers' three bases are one role, listed once
        return " or ".join(dict.fromkeys(" or ".join(map(words, inner)).split(" or ")))
    if outer in (list, tuple):
        return f"list of {words(inner[0])}"
    if outer is dict:
        return f"mapping to {words(inner[-1])}"
    if role := nested_role(annotation):
        return f"name of {'an' if role[0] in 'aeiou' else 'a'} {role}, or {{name: …, its keys}}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"{{{', '.join(f'{key}: …' for key in annotation.model_fields)}}}"
    return getattr(annotation, "__name__", str(annotation))


# ---- classes
# --------------------------------------------------------------------------------------------------
def describe_class(cls: type[BaseModel]) -> ClassDeclaration:
    """Declarations of an imported class, its base classes' included."""
    fields = {name: words(key.annotation, key.metadata) for name, key in cls.model_fields.items()}
    if threat := getattr(cls, "threat_keys", ()):
        grid = describe_class(Grid).fields
        fields |= {key: grid[key] for key in sorted(threat)}
    fields.pop("name", None)
    comments = {
        name: text
        for base in reversed(cls.__mro__)
        if "__annotations__" in vars(base) and base.__module__.partition(".")[0] != "pydantic"
        for name, text in _read_comments(base).items()
        if name in fields
    }
    requires = getattr(cls, "requires", None)
    return ClassDeclaration(
        docstring=inspect.getdoc(cls) or "",
        fields=fields,
        holds=nested_roles(cls),
        comments=comments,
        facts={
            name: _to_lists(value)
            for name in FACTS
            if not callable(value := getattr(cls, name, None)) and value is not None
        },
        needs={name: _to_lists(getattr(requires, name)) for name in NEEDS if requires is not None},
        names_data=issubclass(cls, Dataset) and cls.identity is not Dataset.identity,
    )


def _read_comments(cls: type) -> dict[str, str]:
    """Comments on the lines of a class's own fields, and directly above them; none of a class
    that is in no file."""
    try:
        source = inspect.cleandoc("\n" + inspect.getsource(cls))
    except (OSError, TypeError):
        return {}
    lone: dict[int, str] = {}
    inline: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments = inline if token.line[: token.start[1]].strip() else lone
            comments[token.start[0]] = token.string.lstrip("#").strip()
    out: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            first = node.lineno
            while first - 1 in lone:
                first -= 1
            text = [lone[line] for line in range(first, node.lineno)]
            text += filter(None, [inline.get(node.end_lineno or 0)])
            out |= {node.target.id: " ".join(text)} if text else {}
    return out


def _to_lists(value: Any) -> Any:
    """A class variable as the index holds it."""
    if isinstance(value, dict):
        return {key: _to_lists(inner) for key, inner in sorted(value.items())}
    return sorted(value) if isinstance(value, set | frozenset) else value
