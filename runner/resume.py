"""``runner resume <run>``: goes on with a run from its record, without its command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from runner.mistakes import ConfigError
from runner.record.facts import read
from runner.record.record import find


def main(argv: list[str]) -> int:
    """Resumes one run, named by its folder or by the beginning of its signature."""
    parser = argparse.ArgumentParser(prog="runner resume", description="Goes on with an interrupted run.")
    parser.add_argument("run", help="folder of the run, or the beginning of its signature")
    parser.add_argument("--output-dir", default="outputs", help="where runs are recorded (default: outputs)")
    given = parser.parse_args(argv[1:])
    folder = find(given.run, Path(given.output_dir))
    facts = read(folder)
    if facts is None or not (folder / "config.yaml").exists():
        raise ConfigError(f"{folder}: its run.json or config.yaml is damaged; give the run's own command again")
    cfg = OmegaConf.load(folder / "config.yaml")
    assert isinstance(cfg, DictConfig)
    experiment = cfg.pop("experiment")
    cfg.output_dir = str(folder.parent.parent)

    from runner.app import attempt
    from runner.console import complain

    code, _, message = attempt(cfg, experiment, None)
    if message:
        complain(message)
    return code
