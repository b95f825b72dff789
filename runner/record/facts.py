"""run.json: what it holds, and whether what lies there can be what was written."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

from runner.disk.plain_file import parse_json, read_plain
from runner.disk.read_yaml import load_untrusted
from runner.errors import ACCESS_FIX, ConfigError, RunnerWarning, display_path
from runner.record.files import warn_damage

NAME = "run.json"
Facts = dict[str, Any]  # content of run.json
RunState = Literal["pending", "running", "done", "failed", "diverged", "interrupted", "pruned"]
NUMBER = (int, float)
CHOSEN_ROLES = ("dataset", "model", "inference", "attacker")  # keys of ``choice``
REQUIRED_KEY_TYPES: dict[str, type | tuple[type, ...]] = {
    "state": str,
    "experiment": str,
    "signature": str,
    "data": str,
    "choice": dict,
    "seed": int,
    "replicates": int,
    "smoke": bool,
    "started": str,
    "seconds": NUMBER,
    "finished": dict,
    "result": dict,
}
OPTIONAL_KEY_TYPES: dict[str, type] = {  # facts that only some records have; others read as empty
    "git": dict,
    "versions": dict,
    "hardware": dict,
    "code": list,
    "artefacts": list,
    "files": dict,
    "vectorised": bool,
    "usage": dict,
    "checks": dict,
}
FLAT_KEYS = ("git", "versions", "hardware", "usage")  # facts without lists and dicts in them
CHECK = {"about", "check", "passed", "detail"}


def gather_scores(finished: dict[str, Facts], vectorised: bool) -> dict[str, list[float]]:
    """Each metric's value per replicate, NaN for a replicate that does not have it."""
    if vectorised:
        return {k: v if isinstance(v, list) else [v] for k, v in finished["0"].items()}
    order = sorted(finished, key=int)
    names = dict.fromkeys(name for r in order for name in finished[r])
    return {k: [finished[r].get(k, math.nan) for r in order] for k in names}


def _is_valid(facts: Any) -> bool:
    """True if the facts have the written format and any result matches the replicates.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, OverflowError: they do not.
    """
    if facts["state"] not in get_args(RunState):
        return False
    if not all(
        isinstance(facts[key], kind)
        for key, kind in (REQUIRED_KEY_TYPES | OPTIONAL_KEY_TYPES).items()
        if key in facts
    ):
        return False
    inner = [value for key in FLAT_KEYS for value in facts.get(key, {}).values()]
    if any(isinstance(value, list | dict) for value in inner):
        return False
    checks = itertools.chain.from_iterable(facts.get("checks", {}).values())
    if not all(check.keys() >= CHECK for check in checks):
        return False
    float(facts.get("seconds", 0))  # an integer may be too large
    if facts["state"] == "done" and not facts["finished"]:
        return False  # no replicate was completed
    if facts["state"] != "done" or "vectorised" not in facts:
        return True
    result = gather_scores(facts["finished"], facts["vectorised"])
    # as text: NaN is NaN
    return json.dumps(result, sort_keys=True) == json.dumps(facts["result"], sort_keys=True)


@contextmanager
def skip_unreadable(path: Path) -> Iterator[None]:
    """Context in which a PermissionError is a warning that a record, or a folder of records, is
    left out: once for each."""
    try:
        yield
    except PermissionError as error:
        text = f"left out: {display_path(path)}: cannot be read ({error.strerror}); {ACCESS_FIX}"
        warnings.warn(text, RunnerWarning, stacklevel=1)


def list_folder(folder: Path) -> list[Path]:
    """Content of a folder, sorted; empty if it does not exist.

    If it may not be read, it is empty and a warning is given.
    """
    with suppress(FileNotFoundError, NotADirectoryError), skip_unreadable(folder):
        return sorted(folder.iterdir())
    return []


def read(folder: Path) -> Facts | None:
    """run.json of a folder; None if it is missing or damaged (its run then rebuilds it).

    If it may not be read, None and a warning.
    """
    with skip_unreadable(folder):
        return load_facts(folder)
    return None


def read_facts_or_warn(folder: Path) -> Facts | None:
    """``read`` of a record shown next to others: a damaged one, or one with
    a damaged file, gives a warning too."""
    facts = None
    with skip_unreadable(folder):
        facts = load_facts(folder)
        if facts is not None:
            warn_damage(folder, facts)
        elif (folder / NAME).exists():
            text = f"left out: {folder}: its run.json is damaged"
            warnings.warn(text, RunnerWarning, stacklevel=1)
    return facts


def load_facts(folder: Path) -> Facts | None:
    """``load_written`` with the facts that only some records have, empty where they are missing."""
    facts = load_written(folder)
    empty = {key: kind() for key, kind in OPTIONAL_KEY_TYPES.items()}
    return None if facts is None else empty | facts


def load_written(folder: Path) -> Facts | None:
    """run.json of a folder; None if it is missing or damaged.

    Raises:
        PermissionError: this user may not read it.
    """
    try:
        facts: Facts = parse_json(read_plain(folder / NAME))
        return facts if _is_valid(facts) else None
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def read_config(folder: Path) -> Facts:
    """config.yaml of a folder.

    Raises:
        ConfigError: it is damaged, not there, or not readable, in one line.
    """
    file = folder / "config.yaml"
    config = load_untrusted(file)
    if not isinstance(config, dict):
        raise ConfigError(f"{display_path(file)}: must hold keys and their values")
    return config


def flatten(values: Facts, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys of a config and their values."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def is_there(path: Path) -> bool:
    """True if there is such a file or folder of a record; of one behind a folder that this user may
    not enter there is a warning."""
    with skip_unreadable(path.parent):
        return path.exists()
    return False


def is_readable(path: Path) -> bool:
    """True if this user may read a file of a record; otherwise there is a warning."""
    with skip_unreadable(path):
        path.open("rb").close()
        return True
    return False


def complete(facts: Facts | None, signature: str) -> bool:
    """True if a record's facts are complete and belong to a run of that signature.

    A record marked as done must have a finished replicate.
    """
    if (
        facts is None
        or not facts.keys() >= REQUIRED_KEY_TYPES.keys()
        or facts["signature"] != signature
    ):
        return False
    return facts["state"] != "done" or bool(facts["finished"])
