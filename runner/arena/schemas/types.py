"""JSON Schemas of types that the index of components describes in words."""

from __future__ import annotations

import re
from typing import Any

Schema = dict[str, Any]
Schemas = dict[str, Schema]  # by name
INTERPOLATION: Schema = {"$ref": "#/$defs/interpolation"}
RATIO: Schema = {"$ref": "#/$defs/ratio"}
DEFINITIONS: Schemas = {
    "interpolation": {"type": "string", "pattern": r"^\$\{.*\}$"},
    "ratio": {"type": "string", "pattern": r"^\s*-?[\d.eE+-]+\s*/\s*[\d.eE+-]+\s*$"},  # 8/255
}
SIMPLE: Schemas = {
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "text": {"type": "string"},
    "anything": {},
}
BOUNDS = {
    ">": "exclusiveMinimum",
    "≥": "minimum",
    "<": "exclusiveMaximum",
    "≤": "maximum",
}
SIZES = {"least": "minItems", "most": "maxItems"}
NESTED_COMPONENT = re.compile(r"name of an? (\w+), or \{name: …, its keys\}")
SIZE = re.compile(r",? at (least|most) (\d+) of them")
BOUND = re.compile(r"([><≥≤]) (-?[\d.]+)")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def parse_words(words: str) -> Schema:
    """Schema of a type such as ``number > 0, ≤ 1 or null`` (``class_description.words``).

    The words do not distinguish a list of optional numbers from an optional list of numbers; the
    schema accepts both.  Numbers may be ratios, and any value an interpolation.
    """
    text = NESTED_COMPONENT.sub(r"component:\1", words.replace("true or false", "boolean"))
    return _any_of(re.split(r" or (?![^{]*\})", text))


def _any_of(alternatives: list[str]) -> Schema:
    return {"anyOf": [*(_parse(one, alternatives) for one in alternatives), INTERPOLATION]}


def _parse(text: str, alternatives: list[str]) -> Schema:
    """Schema of one of several alternatives."""
    if text.startswith("list of "):
        sizes = {SIZES[side]: int(number) for side, number in SIZE.findall(text)}
        item = SIZE.sub("", text.removeprefix("list of ")).rstrip(",")
        others = [one for one in alternatives if not one.startswith("list of ")]
        return {"type": "array", "items": _any_of([item, *others])} | sizes
    if text.startswith("mapping to "):
        values = _any_of([text.removeprefix("mapping to ")])
        return {"type": "object", "additionalProperties": values}
    if text.startswith("component:"):
        return {"$ref": f"#/$defs/{text.removeprefix('component:')}"}
    if text.startswith("{"):
        return only_keys({key: {} for key in re.findall(r"(\w+): …", text)})
    if text.startswith(("number", "integer")):
        kind = re.split("[ ,]", text)[0]
        bounds = {BOUNDS[sign]: float(value) for sign, value in BOUND.findall(text)}
        return {"anyOf": [{"type": kind} | bounds, RATIO]}
    if text in SIMPLE:
        return SIMPLE[text]
    names = text.split(" | ")
    return {"enum": [*names, *(float(name) for name in names if NUMBER.fullmatch(name))]}


def only_keys(properties: Schemas) -> Schema:
    """Schema of a mapping with no other keys."""
    return {"type": "object", "properties": properties, "additionalProperties": False}
