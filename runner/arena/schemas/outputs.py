"""JSON Schemas of the lines that commands print with ``--json``, from the types of their objects."""

from __future__ import annotations

import importlib
from typing import Any, Union

from pydantic import TypeAdapter, create_model

from runner.arena.schemas.files import DRAFT
from runner.arena.schemas.types import Schema
from runner.catalogue.sub_commands import COMMANDS
from runner.terminal.json_lines import Fact, Message
from runner.terminal.tables import column_key


def describe_output(command: str) -> Schema:
    """Schema of a line: an object of the command, a named value or a message."""
    types = [_to_type(*place.split(":")) for place in COMMANDS[command].objects]
    adapter: TypeAdapter[Any] = TypeAdapter(Union[(Message, Fact, *types)])  # type: ignore[arg-type]
    return adapter.json_schema() | {"$schema": DRAFT, "title": f"runner {command} --json"}


def _to_type(module: str, name: str) -> Any:
    """A declared type; a model for a dictionary of types, or for a tuple of headings (of texts)."""
    declared = getattr(importlib.import_module(module), name)
    if isinstance(declared, tuple):
        texts: Any = {column_key(heading): (str, ...) for heading in declared}
        return create_model(name, table=(str, ""), **texts)
    if isinstance(declared, dict):
        fields: Any = {key: (Union[kinds], ...) for key, kinds in declared.items()}  # noqa: UP007
        return create_model(name, **fields)
    return declared
