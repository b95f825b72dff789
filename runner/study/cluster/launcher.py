"""Engine and machines for the runs of a study.

``runner study NAME hydra/launcher=slurm hydra.launcher.partition=gpu``

The presets and their keys are shared with sweeps (conf/hydra/launcher, and Hydra's plug-ins).
A run of a study is a separate process with a frozen config, so submitit or Ray are used directly
and not through Hydra's launcher, which composes each job again and reports nothing before the last
one has ended.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from runner.errors import ConfigError, first_line

KEY = "hydra/launcher"
LAUNCHER_KEY_PREFIX = "hydra.launcher."
# engines by the launcher class of the preset
ENGINES = {"SlurmLauncher": "slurm", "LocalLauncher": "slurm_local", "RayLauncher": "ray"}
LOCAL = ("BasicLauncher", "JoblibLauncher")  # launchers replaced by the study's own pool


@dataclass(frozen=True)
class Launcher:
    """Launcher chosen on the command line; without an ``engine`` (None) runs are processes on this
    machine.
    """

    engine: str | None = None
    jobs: int | None = None  # number of parallel jobs, if set by the preset
    keys: dict[str, Any] = field(default_factory=dict)


def split_launcher(words: list[str]) -> tuple[Launcher, list[str]]:
    """Split the overrides of a study into its launcher and the overrides of its runs.

    Raises:
        ConfigError: the launcher or a key is unknown, or the launcher is not installed.
    """
    chosen = [w for w in words if w.lstrip("+").startswith((f"{KEY}=", LAUNCHER_KEY_PREFIX))]
    return _preset(chosen) if chosen else Launcher(), [w for w in words if w not in chosen]


def _preset(words: list[str]) -> Launcher:
    from omegaconf.errors import OmegaConfBaseException

    from runner.catalogue.words import wrong_jobs_message
    from runner.compose.compose import compose_in_full

    if not any(word.startswith(f"{KEY}=") for word in words):
        raise ConfigError(f"{words[0]}: the launcher is missing; add {KEY}=slurm, ray or joblib")
    try:
        node = compose_in_full(words).hydra.launcher
        values = {k: node[k] for k in node if k not in ("_target_", "submitit_folder", "name")}
        keys: Any = {
            key: OmegaConf.to_container(value, resolve=True)
            if OmegaConf.is_config(value)
            else value
            for key, value in values.items()
        }
    except OmegaConfBaseException as error:
        raise ConfigError(first_line(error)) from None
    kind = str(node.get("_target_")).rpartition(".")[2]
    if kind in LOCAL:
        if "n_jobs" in keys and (wrong := wrong_jobs_message(keys["n_jobs"])):
            raise ConfigError(wrong)
        jobs = keys.get("n_jobs", 1)
        return Launcher(jobs=jobs if jobs > 0 else (os.cpu_count() or 1))
    if kind not in ENGINES:
        name = words[0].partition("=")[2]
        raise ConfigError(
            f"{KEY}={name}: not supported by studies; use {', '.join(['joblib', *ENGINES.values()])}"
        )
    return Launcher(ENGINES[kind], keys=keys)


def engine(launcher: Launcher, folder: Path) -> Any:
    """Create an engine; its files are in a folder shared by all nodes."""
    from runner.study.cluster.ray_engine import RayEngine
    from runner.study.cluster.submitit_engine import SubmititEngine

    if launcher.engine == "ray":
        return RayEngine(launcher.keys)
    return SubmititEngine(str(launcher.engine), launcher.keys, folder)
