"""Command lines that Hydra handles: sweeps, flags, and runs in another folder or environment."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hydra._internal.callbacks import Callbacks
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from omegaconf.errors import OmegaConfBaseException

from runner.catalogue.words import explain, parse_overrides, wrong_jobs_message
from runner.commands.app import run_job
from runner.compose.compose import PRIMARY, list_overrides, start_hydra
from runner.errors import ConfigError
from runner.sweep.outcomes import announce_sweep
from runner.sweep.table import show
from runner.terminal.arguments import parse_flags

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra
    from omegaconf import DictConfig

HYDRA_VALUE_ERRORS = ".*Config group override"  # errors in the overrides


def answer(argv: list[str]) -> int:
    """Execute a command line and return its exit code.

    Raises:
        ConfigError: a flag or an override is invalid.
    """
    parser = get_args_parser()
    args = parse_flags(parser, argv)
    if args.config_path or args.experimental_rerun:
        raise ConfigError("--config-path, --experimental-rerun: not supported; give --config-dir")
    if sum(map(bool, (args.run, args.multirun, args.cfg, args.info, args.shell_completion))) > 1:
        raise ConfigError(
            "Only one of --run, --multirun, --cfg, --info and --shell_completion can be specified"
        )
    name = args.config_name or PRIMARY
    words = args.overrides
    try:
        hydra = start_hydra()
        if args.help:
            hydra.app_help(name, parser, args)
        elif args.hydra_help:
            hydra.hydra_help(name, parser, args)
        elif args.cfg:
            hydra.show_cfg(name, words, args.cfg, args.package, args.resolve)
        elif args.info:
            hydra.show_info(args.info, name, words)
        elif args.shell_completion:
            hydra.shell_completion(name, words)
        else:
            cfg = hydra.compose_config(name, words, RunMode.MULTIRUN)
            if args.multirun or cfg.hydra.mode == RunMode.MULTIRUN:
                return _sweep(hydra, cfg)
            hydra.run(name, run_job, [*words, "hydra.mode=RUN"])
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if type(error) is ValueError and not re.match(HYDRA_VALUE_ERRORS, str(error)):
            raise
        raise ConfigError(explain(error, argv)) from None
    return 0


def _sweep(hydra: Hydra, cfg: DictConfig) -> int:
    """Run the jobs of a sweep and print its table."""
    if wrong := wrong_jobs_message(cfg.hydra.launcher.get("n_jobs", 1)):
        raise ConfigError(wrong)
    folder = Path(cfg.hydra.sweep.dir).resolve()
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    cfg.hydra.mode = RunMode.MULTIRUN
    cfg.hydra.sweep.dir = str(folder)
    cfg.hydra.overrides.hydra += ["hydra.mode=MULTIRUN", f"hydra.sweep.dir='{quoted}'"]
    HydraConfig.instance().set_config(cfg)
    words = list_overrides(cfg.hydra)
    swept = [
        override.key_or_group for override in parse_overrides(words) if override.is_sweep_override()
    ]
    sweeper = Plugins.instance().instantiate_sweeper(
        hydra_context=HydraContext(hydra.config_loader, Callbacks()),
        task_function=run_job,
        config=cfg,
    )
    with announce_sweep(folder, swept):
        try:
            sweeper.sweep(words)
        finally:
            failed = show(folder, cfg.hydra.runtime.choices["hydra/sweeper"] == "optuna")
    if not failed:
        return 0
    print(
        f"{failed} of the sweep's jobs failed (the same command retries them)",
        file=sys.stderr,
    )
    return 1
