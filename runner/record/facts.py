"""run.json: what it holds, and whether what lies there can be what was written."""

from __future__ import annotations

import errno
import json
import math
import os
import warnings
from pathlib import Path
from typing import Any, Literal, get_args

from runner.disk.plain_file import parse_json, read_plain
from runner.disk.read_yaml import YAML_READ_ERRORS, describe_read_error
from runner.disk.yaml_limits import read_yaml
from runner.errors import ConfigError, RunnerWarning, display_path
from runner.record.files import warn_damage

NAME = "run.json"
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
OPTIONAL_KEY_TYPES: dict[str, type | tuple[type, ...]] = {  # facts that only some records have
    "git": dict,
    "versions": dict,
    "hardware": dict,
    "code": list,
    "artefacts": list,
    "files": dict,
    "vectorised": bool,
    "usage": dict,
}
CHECK = {"about", "check", "passed", "detail"}


def gather_scores(finished: dict[str, dict[str, Any]], vectorised: bool) -> dict[str, list[float]]:
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
    if not all(
        check.keys() >= CHECK for checks in (facts.get("checks") or {}).values() for check in checks
    ):
        return False
    if not math.isfinite(facts.get("seconds", 0)):
        return False
    if not all(isinstance(version, str) for version in facts.get("versions", {}).values()):
        return False
    if facts["state"] == "done" and not facts["finished"]:
        return False  # no replicate was completed
    if facts["state"] != "done" or not (facts.get("finished") and "vectorised" in facts):
        return True
    result = gather_scores(facts["finished"], facts["vectorised"])
    # as text: NaN is NaN
    return json.dumps(result, sort_keys=True) == json.dumps(facts["result"], sort_keys=True)


class UnreadableRecordError(ConfigError):
    """A record that this user may not read."""

    def __init__(self, path: Path, error: OSError):
        hint = "ask its owner for chmod -R u+rwX,g+rX, or give another --output-dir"
        super().__init__(
            f"{display_path(path)}: cannot be read ({error.strerror or error}); {hint}"
        )


def warn_unreadable(path: Path, error: OSError) -> None:
    """Warns of a record, or a folder of records, that is left out because this user may not read
    it: once for each."""
    warnings.warn(f"left out: {UnreadableRecordError(path, error)}", RunnerWarning, stacklevel=1)


def list_folder(folder: Path) -> list[Path]:
    """Content of a folder, sorted; empty if it does not exist.

    If it may not be read, it is empty and a warning is given.
    """
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        warn_unreadable(folder, error)
        return []


def read(folder: Path) -> dict[str, Any] | None:
    """run.json of a folder; None if it is missing or damaged (its run then rebuilds it).

    If it may not be read, None and a warning.
    """
    try:
        return load_facts(folder)
    except PermissionError as error:
        warn_unreadable(folder, error)
        return None


def read_facts_or_warn(folder: Path) -> dict[str, Any] | None:
    """``read`` of a record shown next to others: a damaged one, or one with
    a damaged file, gives a warning too."""
    try:
        facts = load_facts(folder)
    except PermissionError as error:
        warn_unreadable(folder, error)
        return None
    if facts is None and is_there(folder / NAME):
        warnings.warn(f"left out: {folder}: its run.json is damaged", RunnerWarning, stacklevel=1)
    if facts is not None:
        warn_damage(folder, facts)
    return facts


def load_facts(folder: Path) -> dict[str, Any] | None:
    """run.json of a folder; None if it is missing or damaged.

    Raises:
        PermissionError: this user may not read it.
    """
    try:
        facts = parse_json(read_plain(folder / NAME))
        return facts if _is_valid(facts) else None
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def read_config(folder: Path) -> dict[str, Any]:
    """config.yaml of a folder.

    Raises:
        PermissionError: this user may not read it.
        ConfigError: it is damaged or not there, in one line.
    """
    file = folder / "config.yaml"
    try:
        config = read_yaml(file)
    except PermissionError:
        raise
    except YAML_READ_ERRORS as error:
        raise ConfigError(describe_read_error(file, error)) from None
    if not isinstance(config, dict):
        raise ConfigError(f"{display_path(file)}: must hold keys and their values")
    return config


def is_there(path: Path) -> bool:
    """True if there is such a file or folder of a record; of one behind a folder that this user may
    not enter there is a warning."""
    try:
        return path.exists()
    except PermissionError as error:
        warn_unreadable(path.parent, error)
        return False


def is_readable(path: Path) -> bool:
    """True if this user may read a file of a record; otherwise there is a warning."""
    if os.access(path, os.R_OK):
        return True
    warn_unreadable(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return False


def complete(facts: dict[str, Any] | None, signature: str) -> bool:
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
