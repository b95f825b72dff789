"""JSON Schemas of components and of run-level keys, from the index and the YAML files.

The comment and the default of a key come from its YAML.  Users' components are included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components import registry
from runner import CONF
from runner.arena.schemas.types import DEFINITIONS, Schema, Schemas, only_keys, parse_words
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import CONFIG, catalogue, read_index
from runner.catalogue.list_and_show import explain_keys, find_file, read_keys
from runner.catalogue.settings import BudgetKeys


def _describe_keys(
    fields: Mapping[str, str], comments: Mapping[str, str], defaults: Mapping[str, Any]
) -> Schemas:
    return {
        key: parse_words(words)
        | {"description": comments.get(key, ""), "default": defaults.get(key)}
        for key, words in fields.items()
    }


def describe_component(declared: ClassDeclaration) -> Schema:
    """Schema of a component's mapping."""
    path = find_file(declared.role, declared.name)
    keys, content = read_keys(path) if path.exists() else ([], {})
    comments = {key.path: key.comment for key in explain_keys(keys, declared)}
    properties = _describe_keys(declared.fields, comments, content or {})
    schema = only_keys(properties | {"name": {"const": declared.name}})
    return schema | {"description": declared.sentence}


def reference(role: str, name: str) -> Schema:
    """Reference to the definition of a component."""
    return {"$ref": f"#/$defs/{role}~1{name}"}


def define_components() -> Schemas:
    """Definitions of all components, and of two schemas for each role.

    ``model`` is a nested component, a name or a mapping; ``model/`` has the keys of any model.
    """
    definitions = dict(DEFINITIONS)
    for role in registry.ROLES:
        members = {one.name: describe_component(one) for one in catalogue(role)}
        keys: Schemas = {key: {} for one in members.values() for key in one["properties"]}
        definitions |= {f"{role}/{name}": schema for name, schema in members.items()}
        definitions[f"{role}/"] = only_keys(keys) | {"type": ["object", "null"]}
        # a mapping without a name changes keys of the default component
        cases = [
            {
                "if": {"required": ["name"], "properties": {"name": {"const": name}}},
                "then": reference(role, name),
            }
            for name in members
        ]
        names: Schema = {"enum": list(members)}
        mapping = reference(role, "") | {"properties": {"name": names}, "allOf": cases}
        definitions[role] = {"anyOf": [names, mapping | {"type": "object"}]}
    return definitions


def describe_run_keys() -> Schemas:
    """Schemas of the run-level keys."""
    fields = dict(read_index()[CONFIG].fields)
    del fields["experiment"]  # chosen on the command line
    keys, content = read_keys(CONF / "config.yaml")
    comments = {key.path: key.comment for key in keys}
    budget = BudgetKeys.model_json_schema()["properties"]
    decision = {key: {"description": comments[f"decision.{key}"]} for key in content["decision"]}
    return _describe_keys(fields, comments, content) | {
        "budget": only_keys(budget),
        "decision": only_keys(decision),
    }
