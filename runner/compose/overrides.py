"""Overrides from the command line, composed by Hydra in this process."""

from __future__ import annotations

from hydra import __version__ as hydra_version
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from runner import CONF
from runner.compose.hydra import patches as hydra_patches
from runner.disk import conf_folders

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
        HydraException, OmegaConfBaseException: a mistake, which ``runner.compose.hydra.errors`` can explain.
    """
    hydra_patches.install()
    with initialize_config_dir(str(CONF), **VERSION_BASE):
        return hydra_compose(
            "config", overrides=[*search_path(), *overrides], return_hydra_config=True
        )


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
