"""Engine and machines that compute the runs of a study.

``runner study NAME hydra/launcher=slurm hydra.launcher.partition=gpu``

The presets and their keys are those used for sweeps (conf/hydra/launcher, and the ones
that the plug-ins of Hydra bring).  A run of a study is a separate process from a frozen
config, so the engine is used directly, submitit or Ray, and not Hydra's launcher, which
would compose each job again and reports nothing before the last has ended.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from runner.errors import ConfigError

KEY = "hydra/launcher"
LAUNCHER_KEY_PREFIX = "hydra.launcher."
# by class of the preset
ENGINES = {"SlurmLauncher": "slurm", "LocalLauncher": "slurm_local", "RayLauncher": "ray"}
HERE = ("BasicLauncher", "JoblibLauncher")  # processes of this machine: the study's own pool


@dataclass(frozen=True)
class Launcher:
    """Launcher chosen on the command line; ``engine`` None: processes of this machine."""

    engine: str | None = None
    jobs: int | None = None  # in parallel, where the preset says so
    keys: dict[str, Any] = field(default_factory=dict)


def split_launcher(words: list[str]) -> tuple[Launcher, list[str]]:
    """The launcher that the overrides of a study name, and the overrides that are left for its
    runs.

    Raises:
        ConfigError: no such launcher or key, or one that is not installed.
    """
    chosen = [w for w in words if w.lstrip("+").startswith((f"{KEY}=", LAUNCHER_KEY_PREFIX))]
    return _preset(chosen) if chosen else Launcher(), [w for w in words if w not in chosen]


def _preset(words: list[str]) -> Launcher:
    from omegaconf.errors import OmegaConfBaseException

    from runner.catalogue.words import wrong_jobs_message
    from runner.compose.compose import compose_in_full

    if not any(word.startswith(f"{KEY}=") for word in words):
        raise ConfigError(f"{words[0]}: of which launcher? Give {KEY}=slurm, ray or joblib too")
    try:
        node = compose_in_full(words).hydra.launcher
        keys: Any = {
            k: _plain(node, k) for k in node if k not in ("_target_", "submitit_folder", "name")
        }
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0]) from None
    kind = str(node.get("_target_")).rpartition(".")[2]
    if kind in HERE:
        if "n_jobs" in keys and (wrong := wrong_jobs_message(keys["n_jobs"])):
            raise ConfigError(wrong)
        jobs = keys.get("n_jobs", 1)
        return Launcher(jobs=jobs if jobs > 0 else (os.cpu_count() or 1))
    if kind not in ENGINES:
        name = words[0].partition("=")[2]
        raise ConfigError(
            f"{KEY}={name}: a study's runs go to {', '.join(['joblib', *ENGINES.values()])}"
        )
    return Launcher(ENGINES[kind], keys=keys)


def _plain(node: Any, key: str) -> Any:
    value = node[key]
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def engine(launcher: Launcher, folder: Path) -> Any:
    """The engine of that name; its files are in a folder that all nodes see."""
    from runner.study.cluster.ray_engine import RayEngine
    from runner.study.cluster.submitit_engine import SubmititEngine

    if launcher.engine == "ray":
        return RayEngine(launcher.keys)
    return SubmititEngine(str(launcher.engine), launcher.keys, folder)
