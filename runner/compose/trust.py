"""Restrictions on every config, in any process: it runs no foreign code and reads no secrets; a
file that it names is the one that it was.

Hydra builds its launcher, its sweeper, its callbacks and Python's logging from the
names in a config, and would call any function; a config may come from somewhere else.
Foreign code runs only through ``plugins``, which the user names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf import __version__ as omegaconf_version

from runner.catalogue.parts import all_parts, known_keys
from runner.catalogue.settings import Values
from runner.errors import ConfigError

# what a launcher or a sweeper may be built from: Hydra's own, and the plug-ins of our extras
LAUNCHERS_AND_SWEEPERS = (
    "hydra._internal.core_plugins.",
    "hydra_plugins.hydra_joblib_launcher.",
    "hydra_plugins.hydra_submitit_launcher.",
    "hydra_plugins.hydra_ray_launcher.",
    "hydra_plugins.runner.",
)
VARIABLES = "hydra.job.env_"  # set or copied
SEARCH_PATH = "hydra.searchpath"
HYDRA_PLACES = {  # as conf/config.yaml has them
    "hydra.sweep.dir": "${output_dir}/multirun/${now:%Y-%m-%d_%H-%M-%S}",
    "hydra.sweep.subdir": "${hydra.job.num}",
    "hydra.output_subdir": None,
}
PREFIX = "RUNNER_"  # prefix of the environment variables that a config may read
# OmegaConf 2.3 has another function under the name that 2.4 asks for.
REGISTER_RESOLVER: Callable[..., None] = (
    OmegaConf.register_new_resolver
    if omegaconf_version.startswith("2.3.")
    else OmegaConf.register_resolver
)
GAMES_MODULE = "runner.python.games"  # the one module of ours that a dataset may name
NO_TARGETS = (
    "nothing is built from a _target_; choose a component by name, register yours with plugins=[…]"
)
_ABSENT = object()


def environment(key: str, default: Any = _ABSENT) -> str | None:
    """``${oc.env:RUNNER_X,default}``: records keep what a config resolves to, and a config of
    somebody else must not copy a password into one.

    Raises:
        ValueError: of another name, or not set and no default given.
    """
    if not key.startswith(PREFIX):
        raise ValueError(
            f"oc.env:{key}: a config may read variables named {PREFIX}… alone; set {PREFIX}{key} and read that"
        )
    if key in os.environ:
        return os.environ[key]
    if default is _ABSENT:
        raise ValueError(f"oc.env:{key}: not set in the environment")
    return None if default is None else str(default)


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
    if not path.startswith("hydra."):
        return NO_TARGETS if is_target else ""
    if section in ("hydra.launcher", "hydra.sweeper"):
        if is_target and not str(value).startswith(LAUNCHERS_AND_SWEEPERS):
            return f"no known launcher or sweeper; choose one with {section.replace('.', '/')}=…"
    elif section in ("hydra.job_logging", "hydra.hydra_logging"):
        if _calls(key, str(value)):
            return "logging is built from Python's own classes alone; leave it out"
    elif section == SEARCH_PATH:
        return "folders of YAML files are not read from a config; give --config-dir"
    elif path == "hydra.run.dir" and value != ".":
        return "runs are recorded under output_dir; set output_dir=…"
    elif path.startswith(VARIABLES) and not given & {path, f"{VARIABLES}set"}:
        return "a config sets no variable of the environment; set it where you start runner"
    elif path not in given and value != HYDRA_PLACES.get(path, value):
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


def note_checksums(role: str, values: Values) -> None:
    """Gives a component's full mapping, and those inside it, the SHA-256 of each file that a key
    names, in the key that is for it.  A config that has one already, as a record's has, asks for
    that very file.

    Raises:
        ConfigError: there is no such file, or it is another.
    """
    for where, inner, part in all_parts(role, values):
        for key, checksum in known_keys(inner, part, where).reads.items():
            expected = part.get(checksum)
            name = part.get(key)
            if name is None:
                if expected is not None:
                    raise ConfigError(
                        f"{where}.{checksum}: there is no file that it could be of; name one, {where}.{key}=…"
                    )
                continue
            digest = _sha256(name, f"{where}.{key}")
            if expected is not None and not (
                len(str(expected)) >= 8 and digest.startswith(str(expected))
            ):
                raise ConfigError(
                    f"{where}.{key}={name}: has the SHA-256 {digest[:12]}…, {where}.{checksum} "
                    f"asks for {str(expected)[:12]}…; put "
                    f"that file back, or set {where}.{checksum}=null to use this one"
                )
            part[checksum] = digest


def _sha256(name: object, where: str) -> str:
    path = Path(str(name))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        why = (
            "no such file"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({error.strerror})"
        )
        raise ConfigError(
            f"{where}={name}: {why}; name one, whole or as seen from {Path.cwd()}"
        ) from None


def refuse_untrusted(role: str, values: Values, plugins: list[str]) -> None:
    """Code that a key of a component, or of one inside it, names is of a module that the user named
    in ``plugins``, or makes our own games.

    Raises:
        ConfigError: it is of another."""
    for where, inner, part in all_parts(role, values):
        for key in sorted(known_keys(inner, part, where).imports):
            if part.get(key) is None:
                continue
            module, colon, name = str(part.get(key)).partition(":")
            if module.endswith(".py"):
                named = f"{Path(module).stem}:{name}" if colon else Path(module).stem
                raise ConfigError(
                    f"{where}.{key}={part.get(key)}: {module} is a file; write the module's name, {where}.{key}={named}, and "
                    "start the runner from the file's folder or with it in PYTHONPATH"
                )
            before, _, last = module.rpartition(".")
            if not colon and before in plugins and module not in plugins:
                raise ConfigError(
                    f"{where}.{key}={module}: a module and a name in it; write it as {before}:{last}"
                )
            if module not in (*plugins, GAMES_MODULE):
                raise ConfigError(
                    f"{where}.{key}={part.get(key)}: code that is not the runner's; add 'plugins=[{module}]' if you know it"
                )
