"""``make index``: write ``components/index.json``, the declarations of all components and the options
of all commands.

Each component is imported once; `runner list`, `show`, completion and the validation of keys read
the index and do not need torch.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from unittest.mock import patch

from components import registry
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.class_description import describe_class
from runner.catalogue.declarations import CONFIG, INDEX
from runner.catalogue.settings import Settings
from runner.catalogue.sub_commands import COMMANDS
from runner.errors import ConfigError
from runner.terminal.arguments import Parser

# commands of the arena have two words
SECOND_WORDS = ([], ["run"], ["score"], ["tune"], ["show"], ["pack"], ["verify"])


def describe_command(name: str) -> ClassDeclaration:
    """Options of a command: metavar (empty for flags) and help of each."""
    fields: dict[str, str] = {}
    comments: dict[str, str] = {}

    def read_options(parser: Parser, file: object = None) -> None:
        for action in parser._actions:
            for option in action.option_strings:
                if option.startswith("--"):
                    fields[option] = "" if action.nargs == 0 else str(action.metavar or action.dest)
                    comments[option] = action.help or ""

    with patch.object(Parser, "print_help", read_options):
        for words in SECOND_WORDS:
            with suppress(SystemExit, ConfigError):
                import_module(COMMANDS[name].module).main([name, *words, "--help"])
    return ClassDeclaration(fields=fields, comments=comments)


def index_text() -> str:
    """Index as JSON, with a line for each component."""
    classes = {
        f"{role}/{name}": registry.get(role, name)
        for role in registry.ROLES
        for name in registry.names(role)
        if registry.file(role, name)
    }
    entries = {CONFIG: describe_class(Settings)}
    entries |= {key: describe_class(cls, *key.split("/")) for key, cls in classes.items()}
    entries |= {f"command/{name}": describe_command(name) for name in COMMANDS}
    lines = [
        f"{json.dumps(key)}: {json.dumps(asdict(entry), ensure_ascii=False)}"
        for key, entry in entries.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    INDEX.write_text(index_text(), encoding="utf-8")
