"""Patches of Hydra and OmegaConf: parts of components, and restrictions on every composition.

Hydra has no hook for either, so the functions that compose, apply overrides and read a file are
replaced, here and in the jobs of its sweeps, together with the resolver of the environment.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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

from runner.compose.hydra.apply import apply_overrides
from runner.compose.hydra.guard import extract_absent_roles, refuse_foreign, refuse_several
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import YamlLimitError, check_file, check_words
from runner.errors import ConfigError, display_path

PREFIX = "RUNNER_"  # prefix of the environment variables that a config may read
_ABSENT = object()
# OmegaConf 2.3 has another function under the name that 2.4 asks for.
REGISTER_RESOLVER: Callable[..., None] = (
    OmegaConf.register_new_resolver
    if omegaconf_version.startswith("2.3.")
    else OmegaConf.register_resolver
)
# The function that every composition goes through: Hydra 1.4 has a private one below the public.
COMPOSES = next(
    name for name in ("_load_configuration", "load_configuration") if name in vars(ConfigLoaderImpl)
)
_compose_by_hydra = getattr(ConfigLoaderImpl, COMPOSES)
_read_by_hydra = ConfigRepository.load_config

# contents read, by file and the time of its last change
_files: dict[tuple[str, str, int], ConfigResult] = {}


def install() -> None:
    """Patches all further compositions of this process; the second call does nothing."""
    for (owner, name), function in PATCHES.items():
        setattr(owner, name, function)
    REGISTER_RESOLVER("oc.env", environment, replace=True)


@contextmanager
def within() -> Iterator[None]:
    """Patches the compositions in here; other users of Hydra and OmegaConf in the same process
    find both as they were."""
    originals = {(owner, name): vars(owner)[name] for owner, name in PATCHES}
    resolver = BaseContainer._resolvers["oc.env"]
    hydra = GlobalHydra.instance().hydra
    composed = HydraConfig.instance().cfg
    version = getbase()
    GlobalHydra.instance().clear()
    install()
    try:
        yield
    finally:
        for (owner, name), function in originals.items():
            setattr(owner, name, function)
        BaseContainer._resolvers["oc.env"] = resolver
        GlobalHydra.instance().hydra = hydra
        HydraConfig.instance().cfg = composed
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
    **options: Any,
) -> DictConfig:
    try:
        check_words(overrides)
    except YamlLimitError as error:
        raise ConfigError(str(error)) from None
    refuse_several(overrides)
    words, left_out = extract_absent_roles(overrides)
    if words != overrides and "parsed_overrides" in options:
        options["parsed_overrides"] = None  # Hydra parses the words again
    cfg: DictConfig = _compose_by_hydra(self, config_name, words, run_mode, **options)
    for role in left_out & cfg.keys():  # roles for which an experiment has set keys
        with open_dict(cfg):
            cfg.pop(role)
    refuse_foreign(cfg, {word.partition("=")[0].lstrip("+") for word in overrides})
    return cfg


PATCHES: dict[tuple[type, str], Any] = {
    (ConfigLoaderImpl, COMPOSES): _compose,
    (ConfigLoaderImpl, "_apply_overrides_to_config"): staticmethod(
        partial(apply_overrides, ConfigLoaderImpl._apply_overrides_to_config)
    ),
    (ConfigRepository, "load_config"): _read,
}
