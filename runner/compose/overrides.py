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
        if override.is_sweep_override() and is_sweep:
            continue
        _refuse_several(override)
        if key in ROLES and key not in CHOSEN:
            raise ConfigError(explain_misplaced(key, override.value()))
        if key not in SINGLE_CHOICE_GROUPS:
            continue
        value = override.value()
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


def _refuse_several(override: Override) -> None:
    """Raises ConfigError if there are several values where a run has one."""
    key = override.key_or_group
    word = str(override.input_line)
    if override.is_sweep_override():
        listed = "" if key in SINGLE_CHOICE_GROUPS else f"; a list is written '{key}=[…]'"
        raise ConfigError(
            f"{word}: several values are a sweep; add -m to run one after the other{listed}"
        )
    if key in SINGLE_CHOICE_GROUPS and isinstance(override.value(), list):
        swept = f"{key}={word.partition('=')[2].strip('[]')}"
        raise ConfigError(f"{word}: a run has one {key}; -m {swept} runs one after the other")


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
        key = override.key_or_group
        if "/" in key or override.package is not None:
            raise ConfigError(f"{key}: no such group{nearest(key, [*CHOSEN, 'experiment'])}")
        adds = override.is_add() or override.is_force_add()
        *path, last = key.split(".")
        holder, rest = _open_holder(path, last, cfg, adds)
        if override.is_delete():
            _delete(override, holder, last)
            continue
        try:
            if adds:
                _add(override, holder, rest)
            else:
                value: Any = override.value()
                if override.type is not None and override.type.name == "EXTEND_LIST":  # Hydra 1.4
                    value = [*holder[last], *value]
                _set(value, holder, [*path, last], cfg)
        except OmegaConfBaseException as error:
            line = f"{override.input_line}: {str(error).splitlines()[0]}"
            wrong = wrong_jobs_message(override.value()) if key == N_JOBS_KEY else None
            raise ConfigError(wrong or line) from None


def _rank(override: Override) -> tuple[bool, int]:
    *path, last = override.key_or_group.split(".")
    if override.is_delete():
        return True, -int(last) if last.isdigit() else 0
    return False, len(path)


def _has(node: Any, key: str) -> bool:
    """True if a mapping has a key, or a list an item; a scalar has neither."""
    if isinstance(node, ListConfig):
        return key.isdigit() and int(key) < len(node)
    return isinstance(node, DictConfig) and key in list(node)


def _open_holder(path: list[str], last: str, cfg: DictConfig, adds: bool) -> tuple[Any, str]:
    """The mapping or list that holds the last word of a key, and that word; where keys are added,
    the last that exists, and the words below it.

    The names of components on the way are opened.  Keys below these are checked where their class
    is known, with the nearest existing key in the message.

    Raises:
        ConfigError: the config has no such key.
    """
    node: Any = cfg
    for depth, word in enumerate(path):
        if not _has(node, word):
            break
        at = int(word) if isinstance(node, ListConfig) else word
        if depth and path[0] in CHOSEN:
            if isinstance(node[at], str):
                node[at] = {"name": node[at]}
            if OmegaConf.is_config(node[at]):
                OmegaConf.set_struct(node[at], False)
        node = node[at]
    else:
        depth = len(path)
    if OmegaConf.is_config(node) and (adds or depth == len(path)):
        return node, ".".join([*path[depth:], last])
    role = path[0]
    if role in CHOSEN and cfg.get(role) is None:
        raise ConfigError(
            f"{'.'.join([*path, last])}: no {role} is chosen; choose one too, {role}=… (runner list {role} names them)"
        )
    raise ConfigError(_unknown_key([*path, last][: depth + 1], node, cfg))


def _delete(override: Override, holder: Any, last: str) -> None:
    """Remove an item of a list or a key; a component's key is set to null: ``~inference.gradient``
    is ``inference.gradient=null``.

    Raises:
        ConfigError: the list has no such item, or there is no such key or value.
    """
    key = override.key_or_group
    is_there = _has(holder, last)
    if isinstance(holder, ListConfig):
        if not is_there:
            items = f"items 0 to {len(holder) - 1}" if len(holder) else "no items"
            raise ConfigError(f"~{key}: {key.rpartition('.')[0]} has {items}")
        OmegaConf.set_readonly(holder, False)
        holder.pop(int(last))
    elif is_there and "name" in holder:
        holder[last] = None
    elif is_there and override.value() in (None, holder[last]):
        with open_dict(holder):
            del holder[last]
    else:
        near = nearest(key, CHOSEN).replace("mean ", "mean ~")
        raise ConfigError(f"~{key}: there is nothing of that name to leave out{near}")


def _add(override: Override, holder: Any, rest: str) -> None:
    """Add one key, and mappings on the way to it.

    Raises:
        ConfigError: it is there already.
        OmegaConfBaseException: it takes no such value.
    """
    key = override.key_or_group
    value: Any = override.value()
    if override.is_add() and _has(holder, rest) and not isinstance(value, dict | list):
        raise ConfigError(f"+{key}: is there already; write {key}=…")
    OmegaConf.update(holder, rest, value, force_add=True)


def _set(value: Any, holder: Any, path: list[str], cfg: DictConfig) -> None:
    """Set one key.

    Raises:
        ConfigError: it does not exist, or an entry of it.
        OmegaConfBaseException: it takes no such value.
    """
    key = path[-1]
    if OmegaConf.is_struct(holder):
        if not _has(holder, key):
            raise ConfigError(_unknown_key(path, holder, cfg))
        node = holder[key] if isinstance(value, dict) else None
        for entry in value if isinstance(node, DictConfig) else ():
            if not _has(node, entry):
                raise ConfigError(_unknown_key([*path, entry], node, cfg))
    OmegaConf.update(holder, key, value)


def _unknown_key(path: list[str], node: Any, cfg: DictConfig) -> str:
    """The complaint about the last word of a dotted key that its mapping lacks."""
    *above, word = path
    prefix = "".join(f"{part}." for part in above)
    if prefix in ("hydra.launcher.", "hydra.sweeper.") and ".Basic" in str(node.get("_target_")):
        kind = above[1]
        return f"{prefix}{word}: the basic {kind} has no such key; choose one with hydra/{kind}=…"
    keys = [str(key) for key in node] if isinstance(node, DictConfig) else []
    if not above:
        # the config holds only the groups that were chosen
        keys += [*CHOSEN, "experiment"]
        if inside := _similar_part_keys(word, cfg, bool(similar(word, keys))):
            return f"{word}: unknown key, did you mean {' or '.join(inside)}?"
    matches = nearest(word, keys).replace("did you mean ", f"did you mean {prefix}")
    return f"{prefix}{word}: unknown key{matches}"


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
