"""Stage 1, compose: merge YAML files and command-line overrides into one config.

Hydra chooses and merges the files.  Its loader is wrapped, here and in the jobs of sweeps: files
are read within the limits for untrusted YAML, keys are set by ``apply_overrides``, and a config
that names foreign code is refused.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hydra import __version__ as hydra_version
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from omegaconf.resolvers import oc

from runner import CONF
from runner.catalogue.words import explain, explicit_keys
from runner.compose.overrides import (
    apply_overrides,
    find_absent_roles,
)
from runner.compose.trust import REGISTER_RESOLVER, SEARCH_PATH, environment, refuse_foreign
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import YamlLimitError, check_file, check_words
from runner.errors import ConfigError, display_path

SCHEME = "runner"  # URL scheme of the runner's YAML folders in Hydra's search path
PRIMARY = "config"  # primary config file of every composition

# parsed contents by file and time of its last change
_files: dict[tuple[str, int], ConfigResult] = {}


class Composed(NamedTuple):
    """A composed config, its experiment and the keys set on the command line.

    ``experiment`` is None if none was chosen.  ``explicit`` is None if smoke overrides have been
    applied already, as in the config of a record.
    """

    cfg: DictConfig
    experiment: str | None = None
    explicit: Set[str] | None = None

    @property
    def plugins(self) -> list[str]:
        """Plug-in modules to import."""
        return [str(module) for module in self.cfg.get("plugins") or ()]


class LimitedFiles(FileConfigSource):
    """Folder of YAML files, read within the limits for untrusted YAML; each file is parsed once."""

    @staticmethod
    def scheme() -> str:
        return SCHEME

    def load_config(self, config_path: str) -> ConfigResult:
        """Content of a file.

        Raises:
            ConfigError: the file is invalid YAML, exceeds the limits, is not a mapping, or adds
                folders to Hydra's search path.
        """
        file = Path(os.path.realpath(f"{self.path}/{config_path.removesuffix('.yaml')}.yaml"))
        with reading(file):
            state = (str(file), file.stat().st_mtime_ns)
            if state not in _files:
                check_file(file)
                result = super().load_config(config_path)
                if not isinstance(result.config, DictConfig):
                    raise ConfigError(f"{display_path(file)}: must be a mapping of keys to values")
                if OmegaConf.select(result.config, SEARCH_PATH):
                    raise ConfigError(
                        f"{display_path(file)}: {SEARCH_PATH}: give --config-dir instead"
                    )
                _files[state] = result
        return copy.deepcopy(_files[state])  # Hydra removes the defaults list


class Loader(ConfigLoaderImpl):
    """Hydra's loader with the runner's files, overrides and restrictions."""

    def __init__(self) -> None:
        Plugins.instance().register(LimitedFiles)
        path = create_config_search_path(f"{SCHEME}://{CONF}")
        if folder := conf_folders.user_folder():
            path.prepend("user", f"{SCHEME}://{folder}", anchor="schema")
        super().__init__(path)

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """Compose the config of some overrides.

        Raises:
            ConfigError: an override or a file is invalid.
            HydraException: a file does not exist, or Hydra cannot parse an override.
        """
        REGISTER_RESOLVER("oc.env", environment, replace=True)
        if config_name is None:  # Hydra's own keys, to print its flags
            return super().load_configuration(None, [], run_mode)
        try:
            check_words(overrides)
        except YamlLimitError as error:
            raise ConfigError(str(error)) from None
        parsed = OverridesParser.create().parse_overrides(overrides)
        absent = find_absent_roles(parsed, is_sweep=run_mode == RunMode.MULTIRUN)
        keys = [override for override in parsed if self._sets_key(override)]
        choices = [
            str(override.input_line)
            for override in parsed
            if override not in keys and override.key_or_group not in absent
        ]
        cfg = super().load_configuration(
            config_name, [*choices, *(f"~{role}" for role in absent)], run_mode
        )
        apply_overrides(keys, cfg)
        _note_words(parsed, cfg)
        with open_dict(cfg):
            for role in absent.keys() & cfg.keys():  # set by the experiment
                cfg.pop(role)
        refuse_foreign(cfg, {word.partition("=")[0].lstrip("+") for word in overrides})
        return cfg

    def _sets_key(self, override: Override) -> bool:
        """True if an override sets a key; Hydra handles choices of files and sweeps."""
        if override.is_sweep_override():
            return False
        key = override.key_or_group
        is_group = "." not in key and any(source.is_group(key) for source in self.get_sources())
        return not is_group or isinstance(override.value(), dict)


def _note_words(parsed: list[Override], cfg: DictConfig) -> None:
    """Store all overrides in Hydra's part of the config."""
    hydra = cfg.hydra
    task = [override for override in parsed if not override.is_hydra_override()]
    hydra.overrides.task = [override.input_line for override in task]
    hydra.overrides.hydra = [
        override.input_line for override in parsed if override.is_hydra_override()
    ]
    form = hydra.job.config.override_dirname
    lines = sorted(str(o.input_line) for o in task if o.key_or_group not in form.exclude_keys)
    hydra.job.override_dirname = form.item_sep.join(lines).replace("=", form.kv_sep)


def start_hydra() -> Hydra:
    """Create Hydra with the runner's loader; version 1.3 is set to its own defaults."""
    if hydra_version.startswith("1.3."):
        version.setbase("1.3")
    return Hydra("app", Loader())


@contextmanager
def restore_hydra_on_exit() -> Iterator[None]:
    """Context that restores the global state of Hydra and OmegaConf on exit."""
    composed = HydraConfig.instance().cfg
    base = version.getbase()
    try:
        yield
    finally:
        REGISTER_RESOLVER("oc.env", oc.env, replace=True)
        HydraConfig.instance().cfg = composed
        version.VersionBase.instance().version_base = base


def compose_in_full(overrides: list[str]) -> DictConfig:
    """Compose a config in this process, as the command line does, including Hydra's part.

    Raises:
        ConfigError: an override is invalid; the message has one or two lines.
    """
    try:
        return start_hydra().compose_config(
            PRIMARY, overrides, RunMode.RUN, with_log_configuration=False, from_shell=False
        )
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(explain(error, overrides)) from None


def list_overrides(hydra: Any) -> list[str]:
    """Overrides of a job, from Hydra's part of its config."""
    # unresolved: an override may contain an interpolation, and one that fails must fail with our
    # message
    words: Any = OmegaConf.to_container(hydra.overrides.task, resolve=False)
    return list(words)


def without_hydra(cfg: DictConfig, hydra: Any = None) -> Composed:
    """Separate a job's config from Hydra's part, which Hydra passes to its own jobs separately."""
    OmegaConf.set_struct(cfg, False)
    hydra = hydra or cfg.pop("hydra")
    experiment = hydra.runtime.choices.get("experiment")
    return Composed(cfg, experiment, explicit_keys(list_overrides(hydra)))


def compose(overrides: list[str]) -> Composed:
    """Compose a config in this process.

    Raises:
        ConfigError: an override is invalid; the message has one or two lines.
    """
    return without_hydra(compose_in_full(overrides))
