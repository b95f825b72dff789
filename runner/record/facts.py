"""run.json: its content and validation."""

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
ScoreLists = dict[str, list[float]]  # values of each metric by replicate
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
OPTIONAL_KEY_TYPES: dict[str, type] = {  # facts of only some records, empty for others
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
FLAT_KEYS = ("git", "versions", "hardware", "usage")  # facts without nested lists and dicts
CHECK = {"about", "check", "passed", "detail"}


def gather_scores(finished: dict[str, Facts], vectorised: bool) -> ScoreLists:
    """Values of each metric by replicate, NaN where it is missing."""
    if vectorised:
        return {k: v if isinstance(v, list) else [v] for k, v in finished["0"].items()}
    order = sorted(finished, key=int)
    names = dict.fromkeys(name for r in order for name in finished[r])
    return {k: [finished[r].get(k, math.nan) for r in order] for k in names}


def _is_valid(facts: Any) -> bool:
    """True if the facts have the expected format and the result matches the replicates.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, OverflowError: the format is invalid.
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
    # compared as text because NaN differs from NaN
    return json.dumps(result, sort_keys=True) == json.dumps(facts["result"], sort_keys=True)


@contextmanager
def skip_unreadable(path: Path) -> Iterator[None]:
    """Context that replaces a PermissionError of a record or a folder of records by a warning, once
    per path.
    """
    try:
        yield
    except PermissionError as error:
        text = f"skipped: {display_path(path)}: cannot be read ({error.strerror}); {ACCESS_FIX}"
        warnings.warn(text, RunnerWarning, stacklevel=1)


def list_folder(folder: Path) -> list[Path]:
    """Sorted content of a folder; empty if it does not exist, or, with a warning, if permission is
    denied."""
    with suppress(FileNotFoundError, NotADirectoryError), skip_unreadable(folder):
        return sorted(folder.iterdir())
    return []


def read(folder: Path) -> Facts | None:
    """run.json of a folder; None if it is missing or damaged (the run rebuilds it) or, after a
    warning, if permission is denied.
    """
    with skip_unreadable(folder):
        return load_facts(folder)
    return None


def read_facts_or_warn(folder: Path) -> Facts | None:
    """``read`` for lists of records, with a warning if the record or one of its files is damaged."""
    facts = None
    with skip_unreadable(folder):
        facts = load_facts(folder)
        if facts is not None:
            warn_damage(folder, facts)
        elif (folder / NAME).exists():
            text = f"skipped: {folder}: run.json is damaged"
            warnings.warn(text, RunnerWarning, stacklevel=1)
    return facts


def load_facts(folder: Path) -> Facts | None:
    """``load_written`` with optional facts, empty where they are missing."""
    facts = load_written(folder)
    empty = {key: kind() for key, kind in OPTIONAL_KEY_TYPES.items()}
    return None if facts is None else empty | facts


def load_written(folder: Path) -> Facts | None:
    """run.json of a folder; None if it is missing or damaged.

    Raises:
        PermissionError: this user has no permission to read it.
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
        ConfigError: the file is damaged, missing or not readable.
    """
    file = folder / "config.yaml"
    config = load_untrusted(file)
    if not isinstance(config, dict):
        raise ConfigError(f"{display_path(file)}: must be a mapping of keys to values")
    return config


def flatten(values: Facts, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values of a config by dotted key."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def is_there(path: Path) -> bool:
    """True if a file or folder of a record exists; a warning if permission is denied."""
    with skip_unreadable(path.parent):
        return path.exists()
    return False


def is_readable(path: Path) -> bool:
    """True if a file of a record is readable; otherwise a warning."""
    with skip_unreadable(path):
        path.open("rb").close()
        return True
    return False
