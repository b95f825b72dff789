"""Absent peers of a benchmark: one line names the target that installs them; exit code ABSENT."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ABSENT = 77  # exit code: there is nothing to compare with (of automake's tests: skipped)
TARGET = "make bench-peers"
# environment of the peers that pin packages of which we have newer versions
OWN = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


class AbsentPeer(SystemExit):
    """Raised after a line about a peer that is not installed; a benchmark may go on without it."""

    def __init__(self, peer: str):
        print(
            f"{peer} is not installed, which this benchmark compares with: {TARGET}",
            file=sys.stderr,
        )
        super().__init__(ABSENT)


@contextmanager
def peer_imports() -> Iterator[None]:
    """Context for imports of peers.

    Only a missing module counts as absent: a peer that is installed and broken is an error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise AbsentPeer(str(error.name)) from None


def own_interpreter(peer: str) -> Path:
    """Interpreter of the peers' own environment."""
    if not OWN.exists():
        raise AbsentPeer(peer)
    return OWN
