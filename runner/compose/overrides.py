"""Overrides of a command line: roles chosen and left out, and keys set.

``inference.training_attacker=pgd inference.training_attacker.steps=7``: a name has no keys, so it
is replaced by ``{name: pgd}`` before a key below it is set.
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
    wrong_jobs_message,
)
from runner.compose.expand import explain_misplaced
from runner.errors import ConfigError, first_line, nearest, similar

NONE = (None, "none", "None", "")  # values that leave a role empty


def find_absent_roles(overrides: list[Override], is_sweep: bool) -> dict[str, str]:
    """Roles that are left out, as by ``attacker=null``, and the overrides that do so.

    Raises:
        ConfigError: several values are given for one run, a required role is left out, or a role
            is left out and one of its keys is set.
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
                raise ConfigError(f"{word}: required in every run; choose one with {key}=…")
            absent[key] = word
    if len(experiments) > 1:
        swept = f"-m +experiment={','.join(experiments)}"
        names = ", ".join(experiments)
        raise ConfigError(f"experiment: given twice ({names}); give one, or sweep with {swept}")
    for override in overrides:
        role, dot, _ = override.key_or_group.partition(".")
        if dot and role in absent:
            raise ConfigError(
                f"{override.input_line}: conflicts with {absent[role]}, which leaves the {role} out; remove one of them"
            )
    return absent


def _refuse_several(override: Override) -> None:
    """Raise ConfigError if a key of a single run has several values."""
    key = override.key_or_group
    word = str(override.input_line)
    if override.is_sweep_override():
        listed = "" if key in SINGLE_CHOICE_GROUPS else f", or write a list as '{key}=[…]'"
        raise ConfigError(f"{word}: several values need a sweep; add -m{listed}")
    if key in SINGLE_CHOICE_GROUPS and isinstance(override.value(), list):
        swept = f"{key}={word.partition('=')[2].strip('[]')}"
        raise ConfigError(f"{word}: a run has one {key}; to sweep over several use -m {swept}")


def apply_overrides(overrides: Iterable[Override], cfg: DictConfig) -> None:
    """Set keys in place, nested components before their keys and deletions last.

    Elements of a list are deleted from its end.

    Args:
        overrides: overrides of keys, not of groups.
        cfg: the config of the chosen groups.

    Raises:
        ConfigError: a key is unknown or its value invalid.
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
            line = f"{override.input_line}: {first_line(error)}"
            wrong = wrong_jobs_message(override.value()) if key == N_JOBS_KEY else None
            raise ConfigError(wrong or line) from None


def _rank(override: Override) -> tuple[bool, int]:
    *path, last = override.key_or_group.split(".")
    if override.is_delete():
        return True, -int(last) if last.isdigit() else 0
    return False, len(path)


def _has(node: Any, key: str) -> bool:
    """True if a mapping has a key or a list an item; False for a scalar."""
    if isinstance(node, ListConfig):
        return key.isdigit() and int(key) < len(node)
    return isinstance(node, DictConfig) and key in list(node)


def _open_holder(path: list[str], last: str, cfg: DictConfig, adds: bool) -> tuple[Any, str]:
    """Mapping or list that holds the last word of a key, and that word.  If keys are added, the
    innermost existing mapping or list, and the words below it.

    Names of components on the path are replaced by mappings.  Keys below these are validated later
    against their class.

    Raises:
        ConfigError: the key is unknown.
    """
    node: Any = cfg
    for depth, word in enumerate(path):
        if not _has(node, word):
            break
        index = int(word) if isinstance(node, ListConfig) else word
        if depth and path[0] in CHOSEN:
            if isinstance(node[index], str):
                node[index] = {"name": node[index]}
            if OmegaConf.is_config(node[index]):
                OmegaConf.set_struct(node[index], False)
        node = node[index]
    else:
        depth = len(path)
    if OmegaConf.is_config(node) and (adds or depth == len(path)):
        return node, ".".join([*path[depth:], last])
    role = path[0]
    if role in CHOSEN and cfg.get(role) is None:
        raise ConfigError(
            f"{'.'.join([*path, last])}: the run has no {role}; add {role}=NAME (runner list {role} shows the names)"
        )
    raise ConfigError(_unknown_key([*path, last][: depth + 1], node, cfg))


def _delete(override: Override, holder: Any, last: str) -> None:
    """Remove an item of a list or a key; the key of a component is set to null:
    ``~inference.gradient`` means ``inference.gradient=null``.

    Raises:
        ConfigError: the item, key or value does not exist.
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
        raise ConfigError(f"~{key}: does not exist{near}")


def _add(override: Override, holder: Any, rest: str) -> None:
    """Add a key and the mappings on its path.

    Raises:
        ConfigError: the key exists already.
        OmegaConfBaseException: the value is invalid.
    """
    key = override.key_or_group
    value: Any = override.value()
    if override.is_add() and _has(holder, rest) and not isinstance(value, dict | list):
        raise ConfigError(f"+{key}: exists already; write {key}=…")
    OmegaConf.update(holder, rest, value, force_add=True)


def _set(value: Any, holder: Any, path: list[str], cfg: DictConfig) -> None:
    """Set a key.

    Raises:
        ConfigError: the key, or an entry of its value, is unknown.
        OmegaConfBaseException: the value is invalid.
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
    """Error message for a dotted key with an unknown last word."""
    *above, word = path
    prefix = "".join(f"{part}." for part in above)
    if prefix in ("hydra.launcher.", "hydra.sweeper.") and ".Basic" in str(node.get("_target_")):
        kind = above[1]
        return f"{prefix}{word}: unknown key of the basic {kind}; choose another {kind} with hydra/{kind}=…"
    keys = [str(key) for key in node] if isinstance(node, DictConfig) else []
    if not above:
        # the config contains only the chosen groups
        keys += [*CHOSEN, "experiment"]
        if inside := _similar_part_keys(word, cfg, bool(similar(word, keys))):
            return f"{word}: unknown key, did you mean {' or '.join(inside)}?"
    matches = nearest(word, keys).replace("did you mean ", f"did you mean {prefix}")
    return f"{prefix}{word}: unknown key{matches}"


def _similar_part_keys(word: str, cfg: DictConfig, is_near_run_key: bool) -> list[str]:
    """Keys of the chosen components that match a word exactly or, if no key of the run is similar,
    approximately."""
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
