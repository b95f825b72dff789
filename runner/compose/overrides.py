"""Overrides from the command line, composed by Hydra in this process."""

from __future__ import annotations

from hydra import __version__ as hydra_version
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner import CONF
from runner.compose.hydra import patches as hydra_patches
from runner.compose.hydra.errors import explain, parse_overrides
from runner.compose.resolve import ResolvedConfig, resolve
from runner.disk import conf_folders
from runner.errors import ConfigError

# Hydra 1.3 is told to behave as 1.3; 1.4 has no other behaviour and warns of the argument.
VERSION_BASE = {"version_base": "1.3"} if hydra_version.startswith("1.3.") else {}


def explicit_keys(overrides: list[str]) -> set[str]:
    """``a.b`` of every override ``a.b=…``."""
    return {
        o.split("=", 1)[0].lstrip("+~").split("@")[0].replace("/", ".")
        for o in overrides
        if "=" in o
    }


def compose_in_full(overrides: list[str]) -> DictConfig:
    """Composes in this process, as the command line would, with Hydra's own part of the config.

    Raises:
        ConfigError: any mistake in the words, in one or two lines.
    """
    hydra_patches.install()
    try:
        with initialize_config_dir(str(CONF), **VERSION_BASE):
            return hydra_compose(
                "config", overrides=[*search_path(), *overrides], return_hydra_config=True
            )
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(explain(error, overrides)) from None


def search_path() -> list[str]:
    """The override that makes Hydra look into the user's own folder of YAML files too."""
    folder = conf_folders.user_folder()
    if folder is None:
        return []
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    return [f"hydra.searchpath=['file://{quoted}']"]


def split_hydra_config(cfg: DictConfig) -> tuple[DictConfig, str | None]:
    """A job's own config, and the name of the experiment chosen."""
    experiment = cfg.hydra.runtime.choices.get("experiment")
    OmegaConf.set_struct(cfg, False)
    cfg.pop("hydra")
    return cfg, experiment


def compose(overrides: list[str]) -> tuple[DictConfig, str | None, set[str]]:
    """Composes in this process: (config, experiment, keys set explicitly)."""
    return *split_hydra_config(compose_in_full(overrides)), explicit_keys(overrides)


def compose_words(words: list[str], once: str) -> ResolvedConfig:
    """The config in full of ``words``: overrides, and ``--config-dir``.

    Args:
        words: as on the command line of one run.
        once: advice for an override with several values, as "call run once for each".

    Raises:
        ConfigError: any mistake that shows without building a component.
    """
    argv, folder = conf_folders.split_config_dir(words)
    conf_folders.use(folder)
    if swept := [o.input_line for o in parse_overrides(argv) if o.is_sweep_override()]:
        raise ConfigError(f"{swept[0]}: several values are a sweep; {once}")
    with hydra_patches.within():
        cfg = compose_in_full(argv)
        HydraConfig.instance().set_config(cfg)  # for ${hydra:…} in a user's config
        return resolve(*split_hydra_config(cfg), explicit_keys(argv))
