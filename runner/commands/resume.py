"""``runner resume <run>``: resume a run from its record, without its command line."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from runner.catalogue.plugins import confirm_import
from runner.catalogue.settings import parse_device
from runner.compose.compose import Composed
from runner.compose.trust import refuse_foreign
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import check_file, check_text
from runner.errors import ConfigError, display_path
from runner.record.folders import find
from runner.terminal.arguments import Parser, add_output_dir


def read_run_config(file: Path) -> Composed:
    """Read the config of a record.

    Raises:
        ConfigError: the file is damaged; the message gives the line.
    """
    hint = "repeat the command of the run"
    with reading(file, f"; {hint}"):
        text = check_file(file)
    return parse_run_config(text, file, hint)


def parse_run_config(text: str, file: Path, hint: str = "write it again") -> Composed:
    """Parse the text of a record's config; ``file`` and ``hint``, the fix, appear in messages."""
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
            f"{file}: is damaged, because experiment is missing or plugins is not a list; {hint}"
        )
    if "hydra" in cfg:
        raise ConfigError(f"{display_path(file)}: hydra: not a key of a run's record; remove it")
    refuse_foreign(cfg, set())
    return Composed(cfg, cfg.pop("experiment"))


def main(argv: list[str]) -> int:
    """Resume a run, given by its folder or by the beginning of its signature."""
    parser = Parser(description="Resume an interrupted run.")
    parser.add_argument("run", help="folder of the run, or the beginning of its signature")
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the plug-ins listed in the record without asking",
    )
    parser.add_argument(
        "--device",
        type=parse_device,
        help="device to resume on: cpu, cuda or cuda:1 (default: the recorded device)",
    )
    parser.add_argument("--fresh", action="store_true", help="restart the run from its first step")
    conf_folders.add_option(parser)
    arguments = parser.parse(argv)
    folder = find(arguments.run, arguments.output_dir)
    stored = read_run_config(folder / "config.yaml")
    if not arguments.trust:
        confirm_import(stored.plugins, f"the record {folder}")
    stored.cfg.output_dir = str(folder.parent.parent)
    if arguments.fresh:
        stored.cfg.fresh = True

    from runner.commands.app import attempt

    return attempt(stored, arguments.device).report()
