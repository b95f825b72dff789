"""Overrides that reach into named parts of components.

``inference.training_attacker=pgd inference.training_attacker.steps=7``: a name has no
keys of its own, so it is opened to ``{name: pgd}`` before a key below it is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf

from components.registry import CHOSEN
from runner.errors import ConfigError


def order_overrides(overrides: Iterable[Override]) -> list[Override]:
    """Overrides with a part before the keys below it.

    Deletions come last; elements of a list are deleted from its end.
    """

    def rank(override: Override) -> int:
        role, *keys = override.key_or_group.split(".")
        if override.is_delete():
            return 100 + (-int(keys[-1]) if keys and keys[-1].isdigit() else 0)
        return len(keys) if role in CHOSEN else 0

    return sorted(overrides, key=rank)


def reach_part(override: Override, cfg: DictConfig) -> bool:
    """Open the parts that an override leads into; True if it is thereby done, as a deletion is.

    Raises:
        ConfigError: a list has no such item.
    """
    role, *keys = override.key_or_group.split(".")
    if role not in CHOSEN or not keys:
        return False
    holder = open_parts(cfg.get(role), keys)
    return override.is_delete() and _leave_out(holder, role, keys)


def open_parts(node: Any, keys: list[str]) -> Any:
    """Open the names on the way to a key below a component's mapping.

    Their keys are checked where their class is known, with the nearest existing key in the message.

    Returns:
        The mapping or list that holds the last key; None if there is no way to it.
    """
    for key in keys[:-1]:
        at = int(key) if _is_item(node, key) else key
        value = node.get(at) if isinstance(node, DictConfig) or at != key else None
        if isinstance(value, str):
            node[at] = {"name": value}
        elif not isinstance(value, DictConfig | ListConfig):
            return None
        node = node[at]
        OmegaConf.set_struct(node, False)
    return node


def _leave_out(node: Any, role: str, keys: list[str]) -> bool:
    """Remove an item of a list, or set a component's key to null: ``~inference.gradient`` is
    ``inference.gradient=null``.  False: it is neither.

    Raises:
        ConfigError: the list has no such item.
    """
    if isinstance(node, ListConfig):
        if not _is_item(node, keys[-1]):
            items = f"items 0 to {len(node) - 1}" if len(node) else "no items"
            raise ConfigError(f"~{role}.{'.'.join(keys)}: {role}.{'.'.join(keys[:-1])} has {items}")
        OmegaConf.set_readonly(node, False)
        node.pop(int(keys[-1]))
        return True
    if not isinstance(node, DictConfig) or not {"name", keys[-1]} <= node.keys():
        return False
    node[keys[-1]] = None
    return True


def _is_item(node: Any, key: str) -> bool:
    return isinstance(node, ListConfig) and key.isdigit() and int(key) < len(node)
