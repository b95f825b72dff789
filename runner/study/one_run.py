"""``python -m runner.study.one_run <snapshot> <run> [--watched]``: execute a run of a study from its
frozen config.

With ``--watched`` it stops, as after SIGTERM, when its standard input is closed."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.compose.compose import Composed
    from runner.compose.job import Job
    from runner.study.snapshot import FrozenRun, Snapshot


def _watch() -> None:
    """Wait until standard input is closed, then stop this process."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def load_job(argv: list[str]) -> tuple[Snapshot, FrozenRun, Composed, Job]:
    """Load a run of a snapshot from the command line, with its composed config and its job.

    Raises:
        RunnerError: the run cannot be executed as frozen.
    """
    from omegaconf import OmegaConf

    from runner.errors import ConfigError
    from runner.execution.memory import load_blas
    from runner.study import snapshot

    path = Path(argv[0])
    study = snapshot.load(path.parent.name, path.parents[2])
    assert study is not None
    run = next(r for r in study.runs if r.name == argv[1])
    # paths may differ (another folder, another machine), but not the computation
    cfg = OmegaConf.create({**run.config, "output_dir": str(study.output_dir)})
    load_blas()
    from runner.compose.compose import Composed
    from runner.compose.job import prepare  # imports torch

    composed = Composed(cfg, cfg.pop("experiment"))
    job = prepare(composed)
    if job.signature != run.signature:
        reason = (
            f"the data are now {job.data}, not {run.data}"
            if job.data != run.data
            else "the code interprets the config differently"
        )
        raise ConfigError(
            f"{run.name}: {reason}; take a new snapshot with runner study {study.name} --fresh"
        )
    return study, run, composed, job


def main(argv: list[str]) -> int:
    """Execute or resume a run; return the exit code of ``runner``."""
    from runner.commands.app import attempt
    from runner.errors import ConfigError, RunnerError
    from runner.record import usage
    from runner.terminal.printer import complain

    if "--watched" in argv:
        threading.Thread(target=_watch, daemon=True).start()
    usage.claim_process()
    try:
        _, _, composed, _ = load_job(argv)
    except RunnerError as error:
        complain(str(error))
        return 2 if isinstance(error, ConfigError) else 1
    return attempt(composed).report()


if __name__ == "__main__":
    # imported objects stay alive; the run enables garbage collection
    gc.disable()
    from runner.terminal import streams

    streams.install()
    raise SystemExit(main(sys.argv[1:]))
