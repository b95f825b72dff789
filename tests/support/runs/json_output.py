"""Output of commands with ``--json``, checked by the schema of ``runner schema``."""

import json

from jsonschema import Draft202012Validator

from runner.arena.schemas.outputs import describe_output
from runner.catalogue.sub_commands import COMMANDS


def read_objects(command, printed):
    """Objects that a command printed; each fits the schema, which rejects planted changes of it."""
    schema = describe_output(command if command in COMMANDS else "resume")
    is_valid = Draft202012Validator(schema).is_valid
    lines = [json.loads(line) for line in printed.splitlines()]
    for line in lines:
        assert is_valid(line), line
        for each in schema["$defs"].values() if len(line) > 1 else ():
            if not Draft202012Validator(schema | {"anyOf": [each]}).is_valid(line):
                continue
            for key in each["required"]:
                others = {name: value for name, value in line.items() if name != key}
                assert not is_valid(others), key
                wrong = {key: "text" if isinstance(line[key], dict) else {}}
                assert is_valid(others | wrong) is (each["properties"][key].keys() == {"title"})
    return lines
