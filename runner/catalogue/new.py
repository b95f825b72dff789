"""``runner new <role> <name>``: file, YAML and test of a new component that runs unchanged.

Files are written to the current folder: ``<name>.py``, ``conf/<role>/<name>.yaml`` and
``test_<name>.py``; nothing is overwritten."""

from __future__ import annotations

import keyword
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from components import registry
from runner.disk import conf_folders
from runner.disk.atomic import write_text
from runner.errors import ConfigError, display_path
from runner.terminal.arguments import Parser
from runner.terminal.tables import print_named

# Commands that run the new component in seconds, after ``PYTHONPATH=. runner --config-dir conf``.
COMMANDS = {
    "dataset": "dataset={name} model=mlp inference=mean_field_vi inference.lr=0.01 steps=500 'plugins=[{name}]'",
    "model": "dataset=diabetes model={name} inference=nuts steps=60 inference.warmup=30 inference.chains=4 'plugins=[{name}]'",
    "inference": "+experiment=mog inference={name} steps=1000 'plugins=[{name}]'",
    "attacker": "+experiment=digits_fgsm smoke=true attacker={name} 'plugins=[{name}]'",
    "gradient": "+experiment=vae_digits smoke=true 'inference.gradient={{name: {name}}}' 'plugins=[{name}]'",
    "experiment": "+experiment={name} smoke=true",
    "study": "study {name} smoke=true --config-dir conf && PYTHONPATH=. runner report {name} --config-dir conf",
}
SUFFIX = ".j2"


def main(argv: list[str]) -> int:
    """Write the files and print the commands to run, test and check them."""
    parser = Parser(description="Create a component of your own that runs unchanged.")
    parser.add_argument("role", choices=sorted(COMMANDS), metavar="role", help=", ".join(COMMANDS))
    parser.add_argument(
        "name",
        help="lower-case letters, digits and underscores; names the files, the key and the class",
    )
    parser.add_argument(
        "--in",
        dest="folder",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder to write to (default: the current one)",
    )
    args = parser.parse(argv)
    paths = create(args.role, args.name, args.folder)
    for path in paths:
        print_named("written", display_path(path))
    command = COMMANDS[args.role].format(name=args.name)
    run = f"runner {command}" if args.role == "study" else f"runner --config-dir conf {command}"
    print_named("run it", f"PYTHONPATH=. {run}")
    print_named("test it", f"python -m pytest test_{args.name}.py")
    if args.role in registry.ROLES:
        print_named("check it", f"PYTHONPATH=. runner test {args.name} --config-dir conf")
    else:
        print("edit it  runner schema --to conf/schemas --config-dir conf")
    if args.role == "inference":
        arena = f"runner arena run posteriors_small inference={args.name}"
        print(f"rank it  PYTHONPATH=. {arena} 'plugins=[{args.name}]' --config-dir conf")
    return 0


def _module_elsewhere(name: str, folder: Path) -> str | None:
    """Location of an installed module of that name outside the folder, or None."""
    path = [place for place in sys.path if Path(place or ".").resolve() != folder.resolve()]
    if name in sys.builtin_module_names:
        return "built in"
    spec = PathFinder.find_spec(name, path)
    return None if spec is None else spec.origin or "installed"


def create(role: str, name: str, folder: Path) -> list[Path]:
    """Write the files of a new component, experiment or study; return their paths.

    Raises:
        ConfigError: the name is invalid or taken, or a file exists already.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    if (
        not name.isidentifier()
        or name != name.lower()
        or keyword.iskeyword(name)
        or name.startswith("_")
    ):
        raise ConfigError(
            f"{name}: not a valid name; use lower-case letters, digits and underscores, as in my_{role}"
        )
    if (hidden := _module_elsewhere(name, folder)) is not None:
        raise ConfigError(
            f"{name}: {name}.py would hide the Python module of that name ({hidden}); choose another"
        )
    if conf_folders.find(role, name) is not None:
        raise ConfigError(f"{name}: the runner already has a {role} of that name; choose another")
    environment = Environment(
        loader=PackageLoader("runner.catalogue"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    title = "".join(part.capitalize() for part in name.split("_"))
    files = {
        "module.py": folder / f"{name}.py",
        "conf.yaml": folder / "conf" / role / f"{name}.yaml",
        "test.py": folder / f"test_{name}.py",
    }
    templates = {
        target: environment.get_template(f"{role}/{kind}{SUFFIX}")
        for kind, target in files.items()
        if f"{role}/{kind}{SUFFIX}" in environment.list_templates()
    }
    if conflicts := [path for path in templates if path.exists()]:
        raise ConfigError(
            f"{display_path(conflicts[0])}: exists already; choose another name, or another folder with --in"
        )
    for path, template in templates.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, template.render(name=name, title=title))
    return list(templates)
