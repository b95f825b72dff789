"""Restrictions on every composition, in any process.

A composition needs readable files and one component a role; it contains no foreign code
and sets no foreign environment variable.

Hydra builds its launcher, its sweeper, its callbacks and Python's logging from the
names in a config, and would call any function; a config may come from somewhere else.
Foreign code runs only through ``plugins``, which the user names.  Hydra has no hook for
this, so the one function that composes and the one that reads a file are wrapped.
"""

from __future__ import annotations

import copy
import os
import site
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from hydra.version import VersionBase, getbase
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf import __version__ as omegaconf_version
from omegaconf.basecontainer import BaseContainer

from components.registry import CHOSEN, REQUIRED
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import YamlLimitError, check_file, check_words
from runner.errors import ConfigError, display_path

SWEEPER_TARGET = "hydra_plugins.runner.OptunaSweeper"
PREFIX = "RUNNER_"  # prefix of the environment variables that a config may read
NONE = ("null", "none", "None", "")  # values that leave a role out
HYDRA_PLACES = {  # as conf/config.yaml has them
    "hydra.sweep.dir": "${output_dir}/multirun/${now:%Y-%m-%d_%H-%M-%S}",
    "hydra.sweep.subdir": "${hydra.job.num}",
    "hydra.output_subdir": None,
}
_ABSENT = object()
# OmegaConf 2.3 has another function under the name that 2.4 asks for.
REGISTER_RESOLVER: Callable[..., None] = (
    OmegaConf.register_new_resolver
    if omegaconf_version.startswith("2.3.")
    else OmegaConf.register_resolver
)

# contents read, by file and the time of its last change
_files: dict[tuple[str, str, int], ConfigResult] = {}

# The function that every composition goes through: Hydra 1.4 has a private one below the public.
COMPOSES = next(
    name for name in ("_load_configuration", "load_configuration") if name in vars(ConfigLoaderImpl)
)
_compose_by_hydra = getattr(ConfigLoaderImpl, COMPOSES)
_read_by_hydra = ConfigRepository.load_config


def install() -> None:
    """Holds every further composition of this process to it; the second call does nothing."""
    if getattr(ConfigLoaderImpl, COMPOSES) is _compose:
        return
    setattr(ConfigLoaderImpl, COMPOSES, _compose)
    setattr(ConfigRepository, "load_config", _read)  # noqa: B010
    REGISTER_RESOLVER("oc.env", environment, replace=True)


@contextmanager
def within() -> Iterator[None]:
    """Compositions in here are held to it; whoever uses Hydra and OmegaConf in the same process
    finds both as they were."""
    wrapped = (
        vars(ConfigLoaderImpl)["_apply_overrides_to_config"],
        vars(ConfigLoaderImpl)[COMPOSES],
    )
    read = ConfigRepository.load_config
    resolver = BaseContainer._resolvers["oc.env"]
    hydra = GlobalHydra.instance().hydra
    composed = HydraConfig.instance().cfg
    version = getbase()
    GlobalHydra.instance().clear()
    install()
    try:
        yield
    finally:
        for name, function in zip(("_apply_overrides_to_config", COMPOSES), wrapped, strict=True):
            setattr(ConfigLoaderImpl, name, function)
        setattr(ConfigRepository, "load_config", read)  # noqa: B010
        BaseContainer._resolvers["oc.env"] = resolver
        GlobalHydra.instance().hydra, HydraConfig.instance().cfg = hydra, composed
        VersionBase.instance().version_base = version


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


def _read(self: ConfigRepository, config_path: str) -> ConfigResult | None:
    source = self._find_object_source(config_path, ObjectType.CONFIG)
    file = Path(source.path if source else "") / f"{config_path.removesuffix('.yaml')}.yaml"
    is_file = file.is_file()
    is_of_package = source is not None and source.scheme() == "pkg"  # it stays as it is installed
    state = (str(file), config_path, file.stat().st_mtime_ns if is_file else 0)
    if state in _files:
        return copy.deepcopy(_files[state])
    with reading(file):
        if is_file:
            check_file(file)
        result = _read_by_hydra(self, config_path)
    if result is not None and not isinstance(result.config, DictConfig):
        raise ConfigError(f"{display_path(file)}: must hold keys and their values")
    if result is not None and (is_file or is_of_package):
        _files[state] = copy.deepcopy(
            result
        )  # half of a composition's time is YAML, which sweeps and studies read again
    return result


def _compose(
    self: ConfigLoaderImpl,
    config_name: str | None,
    overrides: list[str],
    run_mode: RunMode,
    **how: Any,
) -> DictConfig:
    try:
        check_words(overrides)
    except YamlLimitError as error:
        raise ConfigError(str(error)) from None
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
    words, left_out = extract_absent_roles(overrides)
    if words != overrides and "parsed_overrides" in how:
        how["parsed_overrides"] = None  # Hydra parses the words again
    cfg: DictConfig = _compose_by_hydra(self, config_name, words, run_mode, **how)
    for role in left_out & cfg.keys():  # roles for which an experiment has set keys
        with open_dict(cfg):
            cfg.pop(role)
    refuse_foreign_code(cfg)
    refuse_foreign_places(cfg, {word.partition("=")[0].lstrip("+") for word in overrides})
    return cfg


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


def refuse_foreign_code(cfg: DictConfig) -> None:
    """Refuses a config that names code to be called, but for the launchers and sweepers that are
    installed.

    Raises:
        ConfigError: naming the key.
    """
    config: Any = OmegaConf.to_container(cfg, resolve=False)
    hydra = config.pop("hydra", None) or {}
    for path, value in _leaves(config, ""):
        if path.split(".")[-1] == "_target_":
            raise ConfigError(
                f"{path}={value}: nothing is built from a _target_; choose a component by name, register yours with plugins=[…]"
            )
    if hydra.get("callbacks"):
        raise ConfigError(
            f"hydra.callbacks.{next(iter(hydra['callbacks']))}: the runner calls nothing that a config names; "
            "register a component of yours with plugins=[…]"
        )
    for part in ("launcher", "sweeper"):
        for path, value in _leaves(hydra.get(part), f"hydra.{part}"):
            if path.endswith("._target_") and not _is_installed(str(value)):
                raise ConfigError(
                    f"{path}={value}: not of an installed plug-in of Hydra; choose one with hydra/{part}=…"
                )
    for part in ("job_logging", "hydra_logging"):
        for path, value in _leaves(hydra.get(part), f"hydra.{part}"):
            if _calls(path.split(".")[-1], str(value)):
                raise ConfigError(
                    f"{path}={value}: logging is built from Python's own classes alone; leave it out"
                )
    if hydra and hydra["run"]["dir"] != ".":
        raise ConfigError(
            f"hydra.run.dir={hydra['run']['dir']}: runs are recorded under output_dir; set output_dir=…"
        )


def refuse_foreign_places(cfg: DictConfig, given: set[str]) -> None:
    """Refuse a config file that sets environment variables, or the paths of Hydra's files.

    The command line may set them; its keys are ``given``.

    Raises:
        ConfigError: naming the key.
    """
    hydra: Any = OmegaConf.to_container(cfg, resolve=False).get("hydra") or {}  # type: ignore[union-attr]
    if not hydra:
        return
    for name, value in (hydra["job"].get("env_set") or {}).items():
        key = f"hydra.job.env_set.{name}"
        if not given & {key, "hydra.job.env_set"}:
            raise ConfigError(
                f"{key}={value}: a config sets no variable of the environment; set it where you start runner"
            )
    for key, usual in HYDRA_PLACES.items():
        *above, last = key.split(".")
        value = hydra
        for part in above[1:]:
            value = value[part]
        if value.get(last) != usual and key not in given:
            raise ConfigError(
                f"{key}={value.get(last)}: a config says nothing of Hydra's own files; set output_dir=…"
            )


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value that is no mapping and no list, with its dotted path."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, node


def _is_installed(target: str) -> bool:
    """True if a class is Hydra's, ours, or from an installed plug-in of Hydra.

    The installation matters because a folder on the path may also contain the package
    hydra_plugins.
    """
    if target == SWEEPER_TARGET or target.startswith("hydra._internal.core_plugins."):
        return True
    parts = target.split(".")
    spec = (
        find_spec(".".join(parts[:2])) if len(parts) > 2 and parts[0] == "hydra_plugins" else None
    )
    if spec is None:
        return False
    where = [
        Path(place) for place in (*(spec.submodule_search_locations or ()), spec.origin) if place
    ]
    libraries = [
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    return any(path.is_relative_to(library) for path in where for library in libraries)


def _calls(key: str, value: str) -> bool:
    """True if a value of Python's logging config calls or imports code outside logging."""
    if key in ("()", "class"):
        return not value.startswith(("logging.", "colorlog."))
    return value.startswith("ext://") and not value.startswith("ext://sys.")
