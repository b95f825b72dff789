"""Restrictions on every config: it runs no foreign code and reads no secrets.

Hydra builds its launcher, its sweeper, its callbacks and Python's logging from the names in a
config, and would call any function; a config may come from an untrusted source.  Foreign code runs
only through ``plugins``, which the user sets.  A file that a component names is identified by its
checksum.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf import __version__ as omegaconf_version

from runner.catalogue.settings import Values
from runner.compose.validate import leaves
from runner.errors import ConfigError

# allowed targets of launchers and sweepers: Hydra's own, and the plug-ins of our extras
LAUNCHERS_AND_SWEEPERS = (
    "hydra._internal.core_plugins.",
    "hydra_plugins.hydra_joblib_launcher.",
    "hydra_plugins.hydra_submitit_launcher.",
    "hydra_plugins.hydra_ray_launcher.",
    "hydra_plugins.runner.",
)
VARIABLES = "hydra.job.env_"  # environment variables to set or copy
SEARCH_PATH = "hydra.searchpath"
HYDRA_PLACES = {  # as conf/config.yaml has them
    "hydra.sweep.dir": "${output_dir}/multirun/${now:%Y-%m-%d_%H-%M-%S}",
    "hydra.sweep.subdir": "${hydra.job.num}",
    "hydra.output_subdir": None,
}
PREFIX = "RUNNER_"  # prefix of the environment variables that a config may read
# OmegaConf 2.3 has a different function under the name used by 2.4.
REGISTER_RESOLVER: Callable[..., None] = (
    OmegaConf.register_new_resolver
    if omegaconf_version.startswith("2.3.")
    else OmegaConf.register_resolver
)
NO_TARGETS = (
    "_target_ is not supported; choose a component by name, register your own with plugins=[…]"
)
GAMES_MODULE = "runner.python.games"  # the only built-in module that a dataset may name
_ABSENT = object()


def environment(key: str, default: Any = _ABSENT) -> str | None:
    """Resolve ``${oc.env:RUNNER_X,default}``.

    Records keep resolved values, and an untrusted config must not copy a password into one.

    Raises:
        ValueError: the name lacks the prefix, or the variable has neither value nor default.
    """
    if not key.startswith(PREFIX):
        raise ValueError(
            f"oc.env:{key}: a config may read only variables named {PREFIX}…; set {PREFIX}{key} and use that"
        )
    if key in os.environ:
        return os.environ[key]
    if default is _ABSENT:
        raise ValueError(f"oc.env:{key}: not set in the environment")
    return None if default is None else str(default)


def refuse_foreign(cfg: DictConfig, given: set[str]) -> None:
    """Refuse a config that calls code other than known launchers and sweepers, moves Hydra's
    own files, or sets environment variables.

    Args:
        cfg: a composed config.
        given: keys of the command line, which may do the last two.

    Raises:
        ConfigError: a key is refused.
    """
    for path, value in leaves(OmegaConf.to_container(cfg, resolve=False)):
        if message := _refusal(path, value, given):
            raise ConfigError(f"{path}={value}: {message}")
        if path.startswith("hydra.callbacks."):
            name = ".".join(path.split(".")[:3])
            raise ConfigError(
                f"{name}: a config cannot name code to call; register your component with plugins=[…]"
            )


def _refusal(path: str, value: Any, given: set[str]) -> str:
    """Reason to refuse a value of a config, or empty."""
    key = path.rpartition(".")[2]
    section = ".".join(path.split(".")[:2])
    is_target = key == "_target_"
    if not path.startswith("hydra."):
        return NO_TARGETS if is_target else ""
    if section in ("hydra.launcher", "hydra.sweeper"):
        if is_target and not str(value).startswith(LAUNCHERS_AND_SWEEPERS):
            return f"unknown launcher or sweeper; choose one with {section.replace('.', '/')}=…"
    elif section in ("hydra.job_logging", "hydra.hydra_logging"):
        if _calls(key, str(value)):
            return "only classes of Python's logging are allowed; remove it"
    elif section == SEARCH_PATH:
        return "folders of YAML files are not read from a config; give --config-dir"
    elif path == "hydra.run.dir" and value != ".":
        return "runs are recorded under output_dir; set output_dir=…"
    elif path.startswith(VARIABLES) and not given & {path, f"{VARIABLES}set"}:
        return "a config cannot set environment variables; set it in the shell"
    elif path not in given and value != HYDRA_PLACES.get(path, value):
        return "a config cannot move Hydra's files; set output_dir=…"
    return ""


def _calls(key: str, value: str) -> bool:
    """True if a value of Python's logging config calls or imports code outside logging."""
    if key in ("()", "class"):
        return not value.startswith(("logging.", "colorlog."))
    return value.startswith("ext://") and not value.startswith("ext://sys.")


def compute_checksums(values: Values, reads: Mapping[str, str], where: str) -> Values:
    """SHA-256 of each file named in a component's keys, by the key that holds it.

    A config with a checksum, such as the config of a record, requires the file to match it.

    Args:
        values: full mapping of the component.
        reads: key of the checksum by the key of the file.
        where: key of the component in the config.

    Raises:
        ConfigError: a file does not exist or does not match.
    """
    checksums = {}
    for key, checksum in reads.items():
        expected = values.get(checksum)
        name = values.get(key)
        if name is None:
            if expected is not None:
                raise ConfigError(
                    f"{where}.{checksum}: the checksum has no file; set {where}.{key}=FILE"
                )
            continue
        digest = _sha256(name, f"{where}.{key}")
        if expected is not None and not (
            len(str(expected)) >= 8 and digest.startswith(str(expected))
        ):
            raise ConfigError(
                f"{where}.{key}={name}: has the SHA-256 {digest[:12]}…, but {where}.{checksum} "
                f"requires {str(expected)[:12]}…; restore "
                f"that file, or set {where}.{checksum}=null to use this one"
            )
        checksums[checksum] = digest
    return checksums


def _sha256(name: object, where: str) -> str:
    path = Path(str(name))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        why = (
            "file not found"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({error.strerror})"
        )
        raise ConfigError(
            f"{where}={name}: {why}; give an absolute path or one relative to {Path.cwd()}"
        ) from None


def refuse_untrusted(
    values: Values, imports: Collection[str], where: str, plugins: Collection[str]
) -> None:
    """Refuse code named in a component's keys unless its module is in ``plugins`` or is the
    runner's own module of games.

    Args:
        values: full mapping of the component.
        imports: its keys that name code.
        where: key of the component in the config.
        plugins: modules whose code it may name.

    Raises:
        ConfigError: the code belongs to another module."""
    for key in sorted(imports):
        if values.get(key) is None:
            continue
        module, colon, name = str(values[key]).partition(":")
        if module.endswith(".py"):
            named = f"{Path(module).stem}:{name}" if colon else Path(module).stem
            raise ConfigError(
                f"{where}.{key}={values[key]}: {module} is a file; write the module's name, {where}.{key}={named}, and "
                "add the file's folder to PYTHONPATH"
            )
        parent, _, last = module.rpartition(".")
        if not colon and parent in plugins and module not in plugins:
            raise ConfigError(
                f"{where}.{key}={module}: the name in the module is missing; write {parent}:{last}"
            )
        if module not in (*plugins, GAMES_MODULE):
            raise ConfigError(
                f"{where}.{key}={values[key]}: is code outside the runner; add 'plugins=[{module}]' if you trust it"
            )
