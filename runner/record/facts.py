"""run.json: what it holds, and whether what lies there can be what was written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal, get_args

NAME = "run.json"
RunState = Literal["pending", "running", "done", "failed", "diverged", "interrupted", "pruned"]
NUMBER = (int, float)
HOLDS: dict[str, type | tuple[type, ...]] = {
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
}  # fmt: skip
SINCE: dict[str, type | tuple[type, ...]] = {  # what some records have
    "git": dict,
    "versions": dict,
    "hardware": dict,
    "code": list,
    "artefacts": list,
    "vectorised": bool,
}  # fmt: skip


def gathered(finished: dict[str, dict[str, Any]], vectorised: bool) -> dict[str, list[float]]:
    """Each metric's value per replicate, NaN for a replicate that does not have it."""
    if vectorised:
        return {k: v if isinstance(v, list) else [v] for k, v in finished["0"].items()}
    order = sorted(finished, key=int)
    names = dict.fromkeys(name for r in order for name in finished[r])
    return {k: [finished[r].get(k, math.nan) for r in order] for k in names}


def _believed(facts: Any) -> bool:
    """Whether what is there has the form of what is written, and a result is that of the replicates.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it has not."""
    if facts["state"] not in get_args(RunState):
        return False
    if not all(isinstance(facts[key], of) for key, of in (HOLDS | SINCE).items() if key in facts):
        return False
    if facts["state"] == "done" and not facts["finished"] and not facts["result"]:
        return False  # nothing was computed
    if facts["state"] != "done" or not (facts.get("finished") and "vectorised" in facts):
        return True
    result = gathered(facts["finished"], facts["vectorised"])
    return json.dumps(result, sort_keys=True) == json.dumps(facts["result"], sort_keys=True)  # as text: NaN is NaN


def read(folder: Path) -> dict[str, Any] | None:
    """run.json of a folder; None when there is none or it is damaged (the run that it is of then rebuilds it)."""
    try:
        facts = json.loads((folder / NAME).read_bytes())
        return facts if _believed(facts) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def complete(facts: dict[str, Any] | None, signature: str) -> bool:
    """Whether the facts of a record are all there, and are those of a run of that signature; one that is said to be done has
    finished something."""
    if facts is None or not facts.keys() >= HOLDS.keys() or facts["signature"] != signature:
        return False
    return facts["state"] != "done" or bool(facts["finished"])
