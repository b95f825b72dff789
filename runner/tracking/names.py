"""Names and texts within MLflow's limits: unique names and truncated texts."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable
from typing import Any

MAX_KEY_CHARACTERS = 230  # of 250; the rest is reserved for the prefix
TRUNCATION_SUFFIX = " … (truncated, complete in the record's {})"


def key(name: str) -> str:
    """Valid MLflow name, not necessarily unique (see ``keys``)."""
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
    """Unique MLflow names: the first of several equal names is kept, and a digest is added to the
    others.
    """
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
    """Truncate a text to MLflow's limit, with a note that names the file with the complete text."""
    mark = TRUNCATION_SUFFIX.format(file)
    return text if len(text) <= longest else text[: longest - len(mark)] + mark


def digest(values: Any) -> str:
    """Short digest of JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]
