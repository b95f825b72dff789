"""JSON Schemas (draft 2020-12) of the YAML files of experiments, studies and suites.

They reject unknown names and keys, and values outside their type or range.  Compatibility of
components and references within a study are checked only by the commands that run them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from components import registry
from runner.arena.schemas.components import reference
from runner.arena.schemas.types import Schema, only_keys
from runner.catalogue.list_and_show import find_file, options, selected_components
from runner.disk.read_yaml import load_untrusted

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Choices = Mapping[str, Mapping[str, str]]  # components of each experiment: role -> name


def _has_default(entry: Schema) -> Schema:
    """Condition that the defaults of an experiment have such an entry."""
    return {"required": ["defaults"], "properties": {"defaults": {"contains": entry}}}


def _chooses(role: str, name: str, choices: Choices) -> Schema:
    """Condition that an experiment names a component or inherits it from another experiment."""
    key = f"override /{role}"
    named = {"type": "object", "required": [key], "properties": {key: {"const": name}}}
    parents = [parent for parent, chosen in choices.items() if chosen.get(role) == name]
    if not parents:
        return _has_default(named)
    inherits = [
        _has_default({"enum": parents}),
        {"not": _has_default({"type": "object", "required": [key]})},
    ]
    return {"anyOf": [_has_default(named), {"allOf": inherits}]}


def describe_experiment(components: Schema, run_keys: Schema) -> Schema:
    """Schema of ``conf/experiment/<name>.yaml``.

    Args:
        components: result of ``define_components``.
        run_keys: result of ``describe_run_keys``.
    """
    experiments = options("experiment")
    choices = {
        name: selected_components(load_untrusted(find_file("experiment", name)))
        for name in experiments
    }
    settings = run_keys | {role: reference(role, "") for role in registry.CHOSEN}
    settings["paper_tables"] = {"type": "array", "items": {"enum": options("published")}}
    chosen = {
        f"override /{role}": {"enum": [*registry.names(role), None]} for role in registry.CHOSEN
    }
    entry = {"anyOf": [{"enum": [*experiments, "_self_"]}, only_keys(chosen)]}
    cases = []
    for role in registry.CHOSEN:
        for name in registry.names(role):
            keys = {role: {"anyOf": [{"type": "null"}, reference(role, name)]}}
            then = {"properties": keys | {"smoke_overrides": {"properties": keys}}}
            cases.append({"if": _chooses(role, name, choices), "then": then})
    others = {
        "defaults": {"type": "array", "items": entry},
        "smoke_overrides": only_keys(settings),
        "hydra": {"type": "object"},
    }
    schema = only_keys(settings | others)
    return schema | {"$schema": DRAFT, "title": "experiment", "allOf": cases, "$defs": components}


def _join(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


def describe_override(components: Schema, run_keys: Schema) -> Schema:
    """Schema of an override such as ``inference.lr=0.01``: a known name, or a known key.

    The arguments are those of ``describe_experiment``.
    """
    patterns = [
        rf"^\+?experiment=({_join(options('experiment'))})$",
        rf"^\+{{0,2}}({_join(run_keys)})(\.[\w.]+)?=",
        r"^(~?hydra|\+{0,2}hydra)[./=]",
    ]
    for role in registry.CHOSEN:
        keys = _join(components[f"{role}/"]["properties"])
        patterns.append(rf"^\+{{0,2}}{role}=({_join([*registry.names(role), 'null'])}|\{{.*)$")
        patterns.append(rf"^(\+{{0,2}}|~){role}\.({keys})([.=]|$)")
    return {"type": "string", "anyOf": [{"pattern": pattern} for pattern in patterns]}


def describe_study(study: Schema, name: str, override: Schema) -> Schema:
    """Schema of a study or a suite.

    Args:
        study: schema of its class.
        name: title of the schema.
        override: result of ``describe_override``.
    """
    definitions = study["$defs"]
    overrides = {"type": "array", "items": {"$ref": "#/$defs/override"}}
    definitions["override"] = override
    definitions["experiment"] = {"enum": [*options("experiment"), None]}
    row = definitions["Row"]["properties"]
    table = definitions["TableSpec"]["properties"]
    row |= {"overrides": overrides, "experiment": {"$ref": "#/$defs/experiment"}}
    row["cells"] = {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": overrides},
    }
    table["published"] = {"enum": [*options("published"), None]}
    study["properties"] |= {"overrides": overrides}
    for key in {"problems", "validation"} & study["properties"].keys():
        study["properties"][key] = {"type": "object", "additionalProperties": overrides}
    required = study.pop("required")
    is_whole = {"if": {"not": {"required": ["extends"]}}, "then": {"required": required}}
    return study | is_whole | {"$schema": DRAFT, "title": name}
