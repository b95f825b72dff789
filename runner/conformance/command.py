"""``runner test MODULE``: conformance of the components that a module registers."""

from __future__ import annotations

import warnings
from dataclasses import astuple, fields

from runner.catalogue import plugins
from runner.conformance.outcomes import CheckResult
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.terminal.arguments import Parser
from runner.terminal.tables import print_table


def main(argv: list[str]) -> int:
    """Check the components of a module; return exit code 1 if a check fails."""
    parser = Parser(
        description="Check the components that your module registers: docstring, keys with their types, and error "
        "messages; then, on a few steps with small partners: finite values, random numbers only from rng, "
        "reproducibility, complete checkpoints, distinct replicates, unchanged inputs, the distribution of a "
        "sampler's draws, and the size of an attack.",
        epilog="Each check prints a line: component, check, passed or failed, reason with file and line. "
        "Exit code 0, 1 if a check fails, 2 if the module cannot be imported.",
    )
    parser.add_argument("module", help="name of the module, as in plugins=[MODULE]")
    parser.add_overrides("partners and settings of the runs, such as dataset=two_moons")
    conf_folders.add_option(parser)
    arguments = parser.parse_with_overrides(argv, "module")
    module = plugins.module_name(arguments.module, "runner test")
    plugins.import_plugins([module], "runner test")
    # imports torch, which --help and errors in the module name do not need
    from runner.conformance.component_checks import check_component, list_components

    components = list_components(module)
    if not components:
        raise ConfigError(
            f"runner test: {module} registers no component; decorate a class with @register(role, name)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [
            result
            for component in components
            for result in check_component(component, module, arguments.overrides)
        ]
    print_table("", [field.name for field in fields(CheckResult)], map(astuple, results))
    return int(any(outcome.state == "failed" for outcome in results))
