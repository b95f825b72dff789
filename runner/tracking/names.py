"""Names and texts as MLflow takes them: names that stay apart, texts that are cut."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable
from typing import Any

MAX_KEY_CHARACTERS = 230  # characters of 250; the rest is for the prefix
ARENA = "arena."  # the experiments of the arena's suites begin so
TRUNCATION_SUFFIX = " … (cut: the record's {} has it whole)"


def key(name: str) -> str:
    """A name that MLflow takes, which other names may become too: see ``keys``."""
    text = re.sub(r"[^\w\-./ :]", "_", name)
    if posixpath.normpath(text) != text or text.startswith("/") or text in (".", ".."):
        text = "/".join(
            re.sub(r"^\.*$", lambda dots: "_" * max(1, len(dots.group())), part)
            for part in text.split("/")
        )
    return (
        text
        if len(text) <= MAX_KEY_CHARACTERS
        else f"{text[: MAX_KEY_CHARACTERS - 9]} {_digest(name)}"
    )


def keys(names: Iterable[str]) -> dict[str, str]:
    """A name of MLflow's for each, no two alike: the first of those that would be keeps it, and the
    others end in a digest."""
    by_name: dict[str, str] = {}
    used: set[str] = set()
    for name in dict.fromkeys(names):
        candidate = key(name)
        if candidate in used:
            candidate = f"{candidate[: MAX_KEY_CHARACTERS - 9]} {_digest(name)}"
        by_name[name] = candidate
        used.add(candidate)
    return by_name


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def cut(text: str, longest: int, file: str) -> str:
    """A text that MLflow would not take whole, with a mark where it ends and the file that has the
    rest."""
    mark = TRUNCATION_SUFFIX.format(file)
    return text if len(text) <= longest else text[: longest - len(mark)] + mark


def digest(values: Any) -> str:
    """A short word for what is JSON."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def experiment_name(experiment: str) -> str:
    """Name in MLflow of an experiment of records: those of the arena's suites are ``arena/…``."""
    return experiment.replace(ARENA, "arena/", 1) if experiment.startswith(ARENA) else experiment
