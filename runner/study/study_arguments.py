"""Arguments of ``runner study``, ``runner rerun`` and ``runner price``."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from runner.catalogue import plugins
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.study.choice import add_only
from runner.study.cluster.launcher import Launcher
from runner.study.cluster.launcher import split_launcher as chosen_launcher
from runner.terminal.arguments import Parser, add_output_dir

PROBE_SECONDS = 5.0  # approximate time of a probe's training and evaluation


def repeat_flags(given: argparse.Namespace, *plugin_modules: str) -> str:
    """Flags that later commands about the study's records must repeat."""
    words = [f"--plugin={module}" for module in plugin_modules]
    if given.output_dir != Path("outputs"):
        words += ["--output-dir", str(given.output_dir)]
    if given.config_dir:
        words += ["--config-dir", given.config_dir]
    return "".join(f" {shlex.quote(word)}" for word in words)


def list_named_plugins(given: argparse.Namespace) -> list[str]:
    """Plug-ins named on the command line, by --plugin or as an override of every run."""
    typed = ",".join(
        text.partition("=")[2].strip("[]")
        for text in given.overrides
        if text.startswith("plugins=")
    )
    return [*given.plugin, *filter(None, map(str.strip, typed.split(",")))]


def add_runs(parser: Parser) -> None:
    """Add the arguments that select runs and the folder of their records."""
    parser.add_argument("study", help="name of a file in conf/study, or a path")
    parser.add_overrides("overrides for every run, and hydra/launcher=slurm, ray or joblib")
    parser.add_count("--jobs", "number of parallel runs (default: one per core)")
    add_only(parser)
    parser.add_argument(
        "--as", dest="name", help="name of the snapshot and the report (default: the study's)"
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="take a new snapshot of the YAML (finished runs are kept)",
    )
    parser.add_argument(
        "--no-probe",
        dest="probe_seconds",
        action="store_const",
        const=None,
        default=PROBE_SECONDS,
        help="prices from records only",
    )
    parser.add_argument(
        "--probe-seconds",
        type=float,
        default=PROBE_SECONDS,
        metavar="S",
        help=f"approximate CPU seconds of a probe (default: {PROBE_SECONDS:g})",
    )
    add_output_dir(parser)
    plugins.add_own_options(parser, "a module that every run imports")


def parse_words(parser: Parser, argv: list[str]) -> tuple[argparse.Namespace, Launcher]:
    """Parse and validate the arguments, including the launcher.

    Raises:
        ConfigError: an argument is invalid.
    """
    arguments = parser.parse_with_overrides(argv, "study")
    launcher, arguments.overrides = chosen_launcher(arguments.overrides)
    for word in arguments.overrides:
        key, _, value = word.lstrip("+").partition("=")
        if key == "output_dir":  # a key of runs, but an option of studies
            raise ConfigError(f"{word}: not supported by studies; use --output-dir {value}")
    if arguments.name is not None:
        if arguments.name:
            inside(Path(), arguments.name, "--as")
        if not arguments.name or "/" in arguments.name:
            raise ConfigError(
                f"--as {arguments.name!r}: not a valid folder name; give a plain name, such as {Path(arguments.study).stem}_2"
            )
    if arguments.jobs is None:
        arguments.jobs = launcher.jobs or os.cpu_count() or 1
    if arguments.probe_seconds is not None and not arguments.probe_seconds > 0.0:
        raise ConfigError(f"--probe-seconds {arguments.probe_seconds:g}: must be > 0")
    return arguments, launcher
