"""``runner test MODULE``: conformance of the components that a module registers."""

from __future__ import annotations

import warnings
from dataclasses import asdict

from runner.catalogue import plugins
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.terminal.arguments import Parser, add_json
from runner.terminal.tables import print_json, print_table


def main(argv: list[str]) -> int:
    """Check the components of a module; exit code 1 if a check fails."""
    parser = Parser(
        prog="runner test",
        description="Checks the components that a module of yours registers: docstring, keys and their types, "
        "refusals, and, on a few steps with the smallest partners, finite values, random numbers from rng only, "
        "the same result for the same seed, a checkpoint that loses nothing, replicates that differ, inputs "
        "that stay unchanged, the law of a sampler's draws, and the size of an attack.",
        epilog="A line for each check: component, check, passed or failed, reason with file and line. "
        "Exit code 0, 1 if a check fails, 2 for a module that cannot be imported.",
    )
    parser.add_argument("module", help="the module, as plugins=[MODULE] names it")
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="partners and settings of the runs, such as dataset=two_moons",
    )
    add_json(parser)
    conf_folders.add_option(parser)
    arguments = parser.parse_intermixed_args(argv[1:])
    if wrong := next((word for word in arguments.overrides if "=" not in word), None):
        raise ConfigError(f"runner test: {wrong}: give one module, then key=value")
    conf_folders.use(arguments.config_dir)
    module = plugins.module_name(arguments.module, "runner test")
    plugins.import_plugins([module], "runner test")
    # torch, which neither --help nor a wrong module needs
    from runner.conformance.component_checks import check_component, list_components

    components = list_components(module)
    if not components:
        raise ConfigError(
            f"runner test: {module} registers no component; decorate a class with @register(role, name)"
        )
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for component in components:
            for result in check_component(component, module, arguments.overrides):
                results.append(result)
                if arguments.json:
                    print_json([asdict(result)])
    if not arguments.json:
        rows = [(one.component, one.check, one.state, one.reason) for one in results]
        print_table("", ("component", "check", "state", "reason"), rows)
    return int(any(one.state == "failed" for one in results))
