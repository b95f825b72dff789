"""``runner resume <run>``: goes on with a run from its record, without its command line."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from runner.catalogue.plugins import confirm_import
from runner.catalogue.settings import validate_device
from runner.compose.compose import Composed
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import check_file, check_text
from runner.errors import ConfigError, display_path
from runner.record.folders import find
from runner.terminal.arguments import Parser, add_output_dir


def read_run_config(file: Path) -> Composed:
    """The config of a record.

    Raises:
        ConfigError: the file is damaged, with the line where it breaks.
    """
    hint = "give the run's own command again"
    with reading(file, f"; {hint}"):
        text = check_file(file)
    return parse_run_config(text, file, hint)


def parse_run_config(text: str, file: Path, hint: str = "write it again") -> Composed:
    """``read_run_config`` of a text; ``file`` is its place, and ``hint`` the fix, for messages."""
    with reading(file, f"; {hint}"):
        check_text(text)
        cfg = OmegaConf.load(StringIO(text))
        content = OmegaConf.to_container(cfg, resolve=False)
    plugins = content.get("plugins", []) if isinstance(content, dict) else None
    if (
        not isinstance(cfg, DictConfig)
        or not isinstance(plugins, list)
        or not isinstance(cfg.get("experiment"), str)
    ):
        raise ConfigError(
            f"{file}: damaged, it lacks the experiment, or its plug-ins are no list; {hint}"
        )
    if "hydra" in cfg:
        raise ConfigError(
            f"{display_path(file)}: hydra: no key of a record, which holds what a run computes alone; remove it"
        )
    return Composed(cfg, cfg.pop("experiment"))


def main(argv: list[str]) -> int:
    """Resumes one run, named by its folder or by the beginning of its signature."""
    parser = Parser(prog="runner resume", description="Goes on with an interrupted run.")
    parser.add_argument("run", help="folder of the run, or the beginning of its signature")
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the plug-ins that its record names, without asking",
    )
    parser.add_argument(
        "--device",
        help="cpu, cuda or cuda:1: go on there (default: the device that it was begun on)",
    )
    parser.add_argument("--fresh", action="store_true", help="compute the run again from its start")
    conf_folders.add_option(parser)
    arguments = parser.parse_args(argv[1:])
    conf_folders.use(arguments.config_dir)
    if arguments.device is not None:
        try:
            validate_device(arguments.device)
        except ValueError as error:
            raise ConfigError(f"--{error}") from None
    folder = find(arguments.run, Path(arguments.output_dir))
    stored = read_run_config(folder / "config.yaml")
    if not arguments.trust:
        confirm_import(stored.plugins, f"the record {folder}", "give --trust")
    stored.cfg.output_dir = str(folder.parent.parent)
    if arguments.fresh:
        stored.cfg.fresh = True

    from runner.commands.app import attempt
    from runner.terminal.printer import complain

    outcome = attempt(stored, arguments.device)
    if outcome.message:
        complain(outcome.message)
    return outcome.code
