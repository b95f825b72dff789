"""Missing peers of a benchmark: a line with the make target that installs them; exit code ABSENT."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ABSENT = 77  # exit code without a peer, as automake's code for skipped tests
TARGET = "make bench-peers"
# environment of peers that pin older versions of our packages
OWN = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


class AbsentPeer(SystemExit):
    """A peer that is not installed: a line is printed, and a benchmark may continue without the
    peer.
    """

    def __init__(self, peer: str):
        print(
            f"{peer}, a peer of this benchmark, is not installed: {TARGET}",
            file=sys.stderr,
        )
        super().__init__(ABSENT)


@contextmanager
def peer_imports() -> Iterator[None]:
    """Context for imports of peers.

    Only a missing module counts as not installed; a broken installation is an error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise AbsentPeer(str(error.name)) from None


def own_interpreter(peer: str) -> Path:
    """Python interpreter of the peers' environment."""
    if not OWN.exists():
        raise AbsentPeer(peer)
    return OWN
