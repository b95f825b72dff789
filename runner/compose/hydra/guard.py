"""Restrictions on every composition, in any process.

A composition has one component a role; it contains no foreign code and sets no foreign
environment variable.

Hydra builds its launcher, its sweeper, its callbacks and Python's logging from the
names in a config, and would call any function; a config may come from somewhere else.
Foreign code runs only through ``plugins``, which the user names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf

from components.registry import CHOSEN, REQUIRED
from runner.errors import ConfigError

# what a launcher or a sweeper may be built from: Hydra's own, and the plug-ins of our extras
LAUNCHERS_AND_SWEEPERS = (
    "hydra._internal.core_plugins.",
    "hydra_plugins.hydra_joblib_launcher.",
    "hydra_plugins.hydra_submitit_launcher.",
    "hydra_plugins.hydra_ray_launcher.",
    "hydra_plugins.runner.",
)
NONE = ("null", "none", "None", "")  # values that leave a role out
VARIABLES = "hydra.job.env_set"
HYDRA_PLACES = {  # as conf/config.yaml has them
    "hydra.sweep.dir": "${output_dir}/multirun/${now:%Y-%m-%d_%H-%M-%S}",
    "hydra.sweep.subdir": "${hydra.job.num}",
    "hydra.output_subdir": None,
}


def refuse_several(overrides: list[str]) -> None:
    """Refuse several values of a key that a run has one of.

    Raises:
        ConfigError: with the words of a sweep.
    """
    for word in overrides:
        key, _, value = word.partition("=")
        if key.lstrip("+") in (*CHOSEN, "experiment") and value.startswith("["):
            swept = f"{key}={value.strip('[]')}"
            raise ConfigError(
                f"{word}: a run has one {key.lstrip('+')}; -m {swept} runs one after the other"
            )
    experiments = [
        word.partition("=")[2] for word in overrides if word.lstrip("+").startswith("experiment=")
    ]
    if len(experiments) > 1:
        swept = f"-m +experiment={','.join(experiments)}"
        names = ", ".join(experiments)
        raise ConfigError(
            f"experiment: given twice ({names}), a run has one; {swept} runs one after the other"
        )


def extract_absent_roles(overrides: list[str]) -> tuple[list[str], set[str]]:
    """Overrides with ``attacker=null`` in Hydra's form, ``~attacker``; and the absent roles.

    Raises:
        ConfigError: a required role is left out, or a role is left out and one of its keys
            is set.
    """
    words = list[str]()
    left_out = dict[str, str]()
    for word in overrides:
        key, _, value = word.partition("=")
        role = key.lstrip("+~")
        if role in CHOSEN and (key.startswith("~") or value in NONE):
            if role in REQUIRED:
                raise ConfigError(f"{word}: no run can do without; choose another with {role}=…")
            left_out[role] = word
        else:
            words.append(word)
    for word in words:
        role = word.lstrip("+~").partition("=")[0].partition(".")[0]
        if role in left_out and "." in word.partition("=")[0]:
            raise ConfigError(
                f"{word}: the {role} is left out by {left_out[role]}; give one of the two"
            )
    return [*words, *(f"~{role}" for role in left_out)], set(left_out)


def refuse_foreign(cfg: DictConfig, given: set[str]) -> None:
    """Refuse a config that names code to be called, but for known launchers and sweepers, or moves
    Hydra's own files, or sets environment variables.

    Args:
        cfg: a composed config.
        given: keys of the command line, which may do the last two.

    Raises:
        ConfigError: naming the key.
    """
    for path, value in leaves(OmegaConf.to_container(cfg, resolve=False)):
        if message := _refusal(path, value, given):
            raise ConfigError(f"{path}={value}: {message}")
        if path.startswith("hydra.callbacks."):
            name = ".".join(path.split(".")[:3])
            raise ConfigError(
                f"{name}: the runner calls nothing that a config names; register a component of yours with plugins=[…]"
            )


def _refusal(path: str, value: Any, given: set[str]) -> str:
    """What is wrong with a value of a config; empty if nothing is."""
    key = path.rpartition(".")[2]
    section = ".".join(path.split(".")[:2])
    is_target = key == "_target_"
    if not path.startswith("hydra.") and is_target:
        return (
            "nothing is built from a _target_; choose a component by name, register yours "
            "with plugins=[…]"
        )
    if section in ("hydra.launcher", "hydra.sweeper"):
        if is_target and not str(value).startswith(LAUNCHERS_AND_SWEEPERS):
            return f"no known launcher or sweeper; choose one with {section.replace('.', '/')}=…"
    elif section in ("hydra.job_logging", "hydra.hydra_logging"):
        if _calls(key, str(value)):
            return "logging is built from Python's own classes alone; leave it out"
    elif path == "hydra.run.dir" and value != ".":
        return "runs are recorded under output_dir; set output_dir=…"
    elif path.startswith(f"{VARIABLES}.") and not given & {path, VARIABLES}:
        return "a config sets no variable of the environment; set it where you start runner"
    elif path in HYDRA_PLACES and value != HYDRA_PLACES[path] and path not in given:
        return "a config says nothing of Hydra's own files; set output_dir=…"
    return ""


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no mapping and no list, with its dotted path."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, node


def _calls(key: str, value: str) -> bool:
    """True if a value of Python's logging config calls or imports code outside logging."""
    if key in ("()", "class"):
        return not value.startswith(("logging.", "colorlog."))
    return value.startswith("ext://") and not value.startswith("ext://sys.")
