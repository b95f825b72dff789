"""Mistakes that show in the words of a command line: Hydra would misunderstand them, or call them
by names of its own."""

from __future__ import annotations

from collections.abc import Iterable

from hydra.core.override_parser.types import ChoiceSweep, Override

from components.registry import CHOSEN
from runner.errors import nearest

N_JOBS_KEY = "hydra.launcher.n_jobs"
SINGLE_CHOICE_GROUPS = (*CHOSEN, "experiment")  # a run has one of each
# Extras that provide the launchers which are plug-ins of Hydra, and the presets based on them.
EXTRA_BY_LAUNCHER = {
    "joblib": "launchers",
    "slurm": "launchers",
    "slurm_local": "launchers",
    "submitit_slurm": "launchers",
    "submitit_local": "launchers",
    "ray": "ray",
    "ray_aws": "ray",
}


def is_sweep(argv: Iterable[str]) -> bool:
    """True if a command line requests more than one run."""
    return any(word in ("-m", "--multirun", "hydra.mode=MULTIRUN") for word in argv)


def override_values(override: Override) -> list[object]:
    """The values that an override gives in turn; one, where it is no sweep."""
    value = override.value()
    return list(value.list) if isinstance(value, ChoiceSweep) else [value]


def sweep_required_message(argv: list[str]) -> str | None:
    """The complaint about a launcher or a sweeper that has nothing to launch: without -m there is
    one run, in this process."""
    for word in argv:
        key = word.lstrip("+").partition("=")[0]
        for part in ("launcher", "sweeper"):
            if key == f"hydra/{part}" or key.startswith(f"hydra.{part}."):
                return f"{word}: serves a sweep, and this is one run; add -m, or leave it out"
    return None


def wrong_jobs_message(value: object) -> str | None:
    """Error message for a number of parallel jobs that joblib cannot use."""
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        return None
    return (
        f"{N_JOBS_KEY}={value}: must be the number of jobs at once, 1 or more; -1 is one per core"
    )


def misunderstood_message(
    argv: list[str], overrides: list[Override], keys: list[str]
) -> str | None:
    """Error message for overrides that are well-formed but cannot be intended.

    ``keys`` are the keys of conf/config.yaml.
    """
    for word in argv:
        if word.startswith(("=", "@")):
            return f"{word}: no key before the equals sign; write key=value"
    for override in overrides:
        key = override.key_or_group
        word = override.input_line or ""
        if override.is_sweep_override() and not is_sweep(argv):
            listed = "" if key in SINGLE_CHOICE_GROUPS else f"; a list is written '{key}=[…]'"
            return f"{word}: several values are a sweep; add -m to run one after the other{listed}"
        if (
            override.is_delete()
            and "." not in key
            and "/" not in key
            and key not in (*CHOSEN, *keys)
        ):
            near = nearest(key, CHOSEN)
            return f"~{key}: there is nothing of that name to leave out" + near.replace(
                "mean ", "mean ~"
            )
    return None


def not_installed(group: str, name: str) -> str | None:
    """Error message for a launcher with a plug-in that is not installed."""
    if group == "hydra/launcher" and name in EXTRA_BY_LAUNCHER:
        extra = EXTRA_BY_LAUNCHER[name]
        return f"{group}={name}: not installed; pip install 'bayes-runner[{extra}]'"
    return None
