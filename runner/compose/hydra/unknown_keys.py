"""Complaints about keys that a config lacks, with the nearest that it has."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from omegaconf import DictConfig

from components.registry import CHOSEN
from runner.errors import nearest, similar


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


def unknown_key_message(path: str, value: Any, cfg: DictConfig) -> str | None:
    """The complaint about a dotted key, or the first key of a mapping there, that the config lacks."""
    entries = [f"{path}.{entry}" for entry in value] if isinstance(value, dict) else []
    return next(filter(None, (_wrong_key(key, cfg) for key in [path, *entries])), None)


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
