"""Overrides that reach into named parts of components.

``inference.training_attacker=pgd inference.training_attacker.steps=7``: a name has no
keys of its own, so it is opened to ``{name: pgd}`` before a key below it is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf

from components import registry
from components.registry import CHOSEN, ROLES
from runner.compose.parts import known_keys
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
    if role not in CHOSEN or not isinstance(cfg.get(role), DictConfig):
        return False
    open_parts(cfg[role], role, keys)
    return override.is_delete() and bool(keys) and _leave_out_part(cfg[role], role, keys)


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
