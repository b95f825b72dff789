"""Words of a command line: what they choose and leave out, and the keys that they set.

``inference.training_attacker=pgd inference.training_attacker.steps=7``: a name has no keys of its
own, so it is opened to ``{name: pgd}`` before a key below it is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from components.registry import CHOSEN, REQUIRED, ROLES
from runner.catalogue.words import (
    N_JOBS_KEY,
    SINGLE_CHOICE_GROUPS,
    explain_misplaced,
    wrong_jobs_message,
)
from runner.errors import ConfigError, nearest, similar

NONE = (None, "none", "None", "")  # values that leave a role out


def find_absent_roles(overrides: list[Override], is_sweep: bool) -> dict[str, str]:
    """Roles that are left out, as by ``attacker=null``, and the words that do it.

    Raises:
        ConfigError: several values are given where a run has one, a required role is left out, or
            a role is left out and one of its keys is set.
    """
    absent = dict[str, str]()
    experiments = list[str]()
    for override in overrides:
        key = override.key_or_group
        word = str(override.input_line)
        if override.is_sweep_override():
            if not is_sweep:
                listed = "" if key in SINGLE_CHOICE_GROUPS else f"; a list is written '{key}=[…]'"
                raise ConfigError(
                    f"{word}: several values are a sweep; add -m to run one after the other{listed}"
                )
            continue
        if key in ROLES and key not in CHOSEN:
            raise ConfigError(explain_misplaced(key, override.value()))
        if key not in SINGLE_CHOICE_GROUPS:
            continue
        value = override.value()
        if isinstance(value, list):
            swept = f"{key}={word.partition('=')[2].strip('[]')}"
            raise ConfigError(f"{word}: a run has one {key}; -m {swept} runs one after the other")
        if key == "experiment":
            experiments.append(str(value))
        elif override.is_delete() or value in NONE:
            if key in REQUIRED:
                raise ConfigError(f"{word}: no run can do without; choose another with {key}=…")
            absent[key] = word
    if len(experiments) > 1:
        swept = f"-m +experiment={','.join(experiments)}"
        names = ", ".join(experiments)
        raise ConfigError(
            f"experiment: given twice ({names}), a run has one; {swept} runs one after the other"
        )
    for override in overrides:
        role, dot, _ = override.key_or_group.partition(".")
        if dot and role in absent:
            raise ConfigError(
                f"{override.input_line}: the {role} is left out by {absent[role]}; give one of the two"
            )
    return absent


def apply_overrides(overrides: Iterable[Override], cfg: DictConfig) -> None:
    """Set keys in place, a part before the keys below it and deletions last.

    Elements of a list are deleted from its end.

    Args:
        overrides: overrides of keys, not of groups.
        cfg: the config of the groups that were chosen.

    Raises:
        ConfigError: the config has no such key, or it takes no such value.
    """
    for override in sorted(overrides, key=_rank):
        role, *keys = override.key_or_group.split(".")
        holder = open_parts(cfg.get(role), keys) if role in CHOSEN and keys else None
        if override.is_delete() and _leave_out(holder, role, keys):
            continue
        try:
            _apply(override, cfg)
        except OmegaConfBaseException as error:
            raise ConfigError(_explain_key(override, cfg, error)) from None


def _rank(override: Override) -> int:
    role, *keys = override.key_or_group.split(".")
    if override.is_delete():
        return 100 + (-int(keys[-1]) if keys and keys[-1].isdigit() else 0)
    return len(keys) if role in CHOSEN else 0


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


def _apply(override: Override, cfg: DictConfig) -> None:
    """Set or delete one key, by the rules of Hydra's grammar.

    Raises:
        ConfigError: a group does not exist, or a key to be added or left out does not fit.
        OmegaConfBaseException: the key does not exist, or takes no such value.
    """
    key = override.key_or_group
    value: Any = override.value()
    present = OmegaConf.select(cfg, key)
    if "/" in key or override.package is not None:
        raise ConfigError(f"{key}: no such group{nearest(key, [*CHOSEN, 'experiment'])}")
    if override.is_delete():
        if present is None or value not in (None, present):
            near = nearest(key, CHOSEN).replace("mean ", "mean ~")
            raise ConfigError(f"~{key}: there is nothing of that name to leave out{near}")
        holder, _, last = key.rpartition(".")
        with open_dict(cfg):
            del (OmegaConf.select(cfg, holder) if holder else cfg)[last]
        return
    if override.is_add() and present is not None and not isinstance(value, dict | list):
        raise ConfigError(f"+{key}: is there already; write {key}=…")
    if override.type is not None and override.type.name == "EXTEND_LIST":  # of Hydra 1.4
        value = [*present, *value]
    OmegaConf.update(cfg, key, value, force_add=override.is_add() or override.is_force_add())


def _explain_key(override: Override, cfg: DictConfig, error: OmegaConfBaseException) -> str:
    """The complaint about a key that cannot be set."""
    key = override.key_or_group
    role, *keys = key.split(".")
    if keys and role in CHOSEN and cfg.get(role) is None:
        return (
            f"{key}: no {role} is chosen; choose one too, {role}=… (runner list {role} names them)"
        )
    if key.startswith(("hydra.launcher.", "hydra.sweeper.")):
        kind = keys[0]
        if ".Basic" in str(cfg.hydra[kind].get("_target_")):
            return f"{key}: the basic {kind} has no such key; choose one with hydra/{kind}=…"
    value = override.value()
    if key == N_JOBS_KEY and (wrong := wrong_jobs_message(value)):
        return wrong
    entries = [f"{key}.{entry}" for entry in value] if isinstance(value, dict) else []
    if message := next(filter(None, (_wrong_key(path, cfg) for path in [key, *entries])), None):
        return message
    return f"{override.input_line}: {str(error).splitlines()[0]}"


def _wrong_key(path: str, cfg: DictConfig) -> str | None:
    """The complaint about the first part of a dotted key that the config lacks."""
    node: Any = cfg
    parts = path.split(".")
    for i, part in enumerate(parts):
        if not isinstance(node, DictConfig) or part not in node:
            keys = [str(k) for k in node] if isinstance(node, DictConfig) else []
            if i == 0:
                # the config holds only the groups that were chosen
                keys += [*CHOSEN, "experiment"]
                if inside := _similar_part_keys(part, cfg, bool(similar(part, keys))):
                    return f"{part}: unknown key, did you mean {' or '.join(inside)}?"
            prefix = "".join(f"{above}." for above in parts[:i])
            matches = nearest(part, keys).replace("did you mean ", f"did you mean {prefix}")
            return f"{prefix}{part}: unknown key{matches}"
        node = node[part]
    return None


def _similar_part_keys(word: str, cfg: DictConfig, is_near_run_key: bool) -> list[str]:
    """Keys of the chosen components that are spelt as a word is or, where no key of the run is
    near, that are near it."""
    keys = {
        f"{role}.{key}": str(key)
        for role in CHOSEN
        if isinstance(cfg.get(role), DictConfig)
        for key in cfg[role]
    }
    spelt_so = [path for path, key in keys.items() if key == word]
    if spelt_so or is_near_run_key:
        return spelt_so
    near = get_close_matches(word.lower(), keys.values(), n=1, cutoff=0.75)
    return [path for path, key in keys.items() if key in near]
