"""``runner schema``: write the JSON Schemas of experiments, studies, suites and outputs."""

from __future__ import annotations

import json
from pathlib import Path

from runner.arena.schemas.components import define_components, describe_run_keys
from runner.arena.schemas.files import describe_experiment, describe_override, describe_study
from runner.arena.schemas.outputs import describe_output
from runner.arena.suite import Suite
from runner.catalogue import plugins
from runner.catalogue.sub_commands import COMMANDS
from runner.disk.atomic import write_text
from runner.errors import display_path
from runner.study.definition import StudyDefinition
from runner.terminal.arguments import Parser
from runner.terminal.tables import print_named


def write_schemas(folder: Path) -> list[Path]:
    """Write ``experiment.json``, ``study.json``, ``suite.json`` and ``output/COMMAND.json``; return
    their paths."""
    components = define_components()
    run_keys = describe_run_keys()
    override = describe_override(components, run_keys)
    schemas = {
        "experiment": describe_experiment(components, run_keys),
        "study": describe_study(StudyDefinition.model_json_schema(), "study", override),
        "suite": describe_study(Suite.model_json_schema(), "suite", override),
    }
    schemas |= {f"output/{name}": describe_output(name) for name in COMMANDS}
    (folder / "output").mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{name}.json": schema for name, schema in schemas.items()}
    for path, schema in paths.items():
        write_text(path, json.dumps(schema, ensure_ascii=False) + "\n")
    return list(paths)


def main(argv: list[str]) -> int:
    """Execute ``runner schema``; ``argv`` begins with ``schema``."""
    parser = Parser(
        description="Write JSON Schemas of experiments, studies and suites, with the names, types, ranges, defaults and "
        "comments of all keys, and of the lines that each command prints with --json (output/COMMAND.json; a run prints "
        "those of resume). Editors complete and check YAML files that name their schema in the first lines: "
        "# yaml-language-server: $schema=PATH/experiment.json",
    )
    parser.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="folder of the schemas"
    )
    plugins.add_own_options(parser, "a module with components of your own to include")
    arguments = parser.parse(argv)
    plugins.import_plugins(arguments.plugin, "--plugin")
    for path in write_schemas(arguments.to):
        print_named("written", display_path(path))
    return 0
