"""A benchmark whose peer is not installed says so in one line, names the target that installs it,
and ends with ABSENT."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ABSENT = 77  # exit code: there is nothing to compare with (of automake's tests: skipped)
TARGET = "make bench-peers"
# of those that pin packages which we have newer
OWN = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


def absent(peer: str) -> NoReturn:
    print(f"{peer} is not installed, which this benchmark compares with: {TARGET}", file=sys.stderr)
    raise SystemExit(ABSENT)


@contextmanager
def peer_imports() -> Iterator[None]:
    """Around imports of peers.  Only their absence is taken for it: a peer that is there and broken
    is an error."""
    try:
        yield
    except ModuleNotFoundError as missing:
        absent(str(missing.name))


def own_interpreter(peer: str) -> Path:
    """The interpreter of the environment that ``peer`` has for itself."""
    if not OWN.exists():
        absent(peer)
    return OWN
