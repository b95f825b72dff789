"""Overrides from the command line, composed by Hydra; they can reach into named parts.

``inference.training_attacker=pgd inference.training_attacker.steps=7``: a name has no
keys of its own, so it is opened to ``{name: pgd}`` before a key below it is set.
"""

from __future__ import annotations

from typing import Any

from hydra import __version__ as hydra_version
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf

from components import registry
from components.registry import CHOSEN, ROLES
from runner import CONF
from runner.compose import guard
from runner.compose.parts import known_keys
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
        HydraException, OmegaConfBaseException: a mistake, which ``runner.compose.errors`` can explain.
    """
    patch_hydra_overrides()
    guard.install()
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


def open_parts(node: Any, role: str, keys: list[str]) -> bool:
    """Opens the names that lie on the way to a key below a component's mapping; whether it leads
    into a part of it."""
    try:
        inner = (
            known_keys(role, OmegaConf.to_container(node), role).holds.get(keys[0])
            if len(keys) > 1
            else None
        )
    except ConfigError:  # key of a plug-in, not imported yet, or a mistake that is reported later
        return False
    if inner is None or node.get(keys[0]) is None:
        return False
    key: str | int = keys[0]
    holder = node
    below = keys[1:]
    if isinstance(node[key], ListConfig) and below[0].isdigit() and int(below[0]) < len(node[key]):
        holder = node[key]
        key = int(below[0])
        below = below[1:]
    if below and isinstance(holder[key], str):
        holder[key] = {"name": holder[key]}
    if not below or not isinstance(holder[key], DictConfig):
        return False
    # Its keys are checked where its class is known, with the nearest existing key in the message.
    OmegaConf.set_struct(holder[key], False)
    open_parts(holder[key], inner, below)
    return True


def patch_hydra_overrides() -> None:
    """Makes Hydra, here and in the jobs of its sweeps, open the parts that an override leads into.

    Hydra has no hook between two overrides; it applies them in one function, the same for a run, a
    job of a sweep and ``compose``, which is given them one by one instead."""
    if ConfigLoaderImpl._apply_overrides_to_config is _apply:
        return
    setattr(ConfigLoaderImpl, "_apply_overrides_to_config", staticmethod(_apply))  # noqa: B010


_apply_in_one_go = ConfigLoaderImpl._apply_overrides_to_config


def _apply(overrides: list[Override], cfg: DictConfig) -> None:
    for override in sorted(overrides, key=_depth):
        role, *keys = override.key_or_group.split(".")
        if role in CHOSEN and isinstance(cfg.get(role), DictConfig):
            open_parts(cfg[role], role, keys)
            if override.is_delete() and keys and _leave_out_part(cfg[role], role, keys):
                continue
        _apply_in_one_go([override], cfg)


def _leave_out_part(node: Any, role: str, keys: list[str]) -> bool:
    """Leaves out the part, or the item of a list, that a key below a component's mapping leads to:
    ``~inference.gradient`` is ``inference.gradient=null``.  False: it leads to neither.

    Raises:
        ConfigError: the list has no such item."""
    for key in keys[:-1]:
        node = (
            node.get(key)
            if isinstance(node, DictConfig)
            else node[int(key)]
            if _is_item(node, key)
            else None
        )
    if isinstance(node, ListConfig):
        if not _is_item(node, keys[-1]):
            items = f"items 0 to {len(node) - 1}" if len(node) else "no items"
            raise ConfigError(f"~{role}.{'.'.join(keys)}: {role}.{'.'.join(keys[:-1])} has {items}")
        OmegaConf.set_readonly(node, False)
        node.pop(int(keys[-1]))
        return True
    if not isinstance(node, DictConfig) or keys[-1] not in node or not _holds(node, role, keys):
        return False
    node[keys[-1]] = None
    return True


def _is_item(node: Any, key: str) -> bool:
    return isinstance(node, ListConfig) and key.isdigit() and int(key) < len(node)


def _holds(node: DictConfig, role: str, keys: list[str]) -> bool:
    """True if the last key of a component's mapping holds a component.

    A key of a nested part is looked up in the part's own mapping.
    """
    try:
        values = OmegaConf.to_container(node)
        roles = [role] if len(keys) == 1 else list(ROLES)
        return any(
            registry.exists(r, str(node.get("name"))) and keys[-1] in known_keys(r, values, r).holds
            for r in roles
        )
    except ConfigError:
        return False


def _depth(override: Override) -> int:
    """Sort key: a part comes before the keys below it, in any given order.

    Deletions come last; elements of a list are deleted from its end.
    """
    role, *keys = override.key_or_group.split(".")
    if override.is_delete():
        return 100 + (-int(keys[-1]) if keys and keys[-1].isdigit() else 0)
    return len(keys) if role in CHOSEN else 0
