"""Users' mistakes: one or two lines that name the key, the value and the mend, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

FAILURES = "RUNNER_FAILURES"  # names the file to which the jobs of a sweep, in whatever process, add what went wrong


class ConfigError(Exception):
    """A mistake in what was asked for, found before any work."""


class RunFailure(Exception):
    """A run that cannot go on; what it had done is safe on disk."""


def nearest(word: str, words: Iterable[str]) -> str:
    """``, did you mean X?`` or, when nothing is near, the words that exist."""
    words = sorted(set(words))
    near = get_close_matches(word, words, n=1, cutoff=0.6)
    if near:
        return f", did you mean {near[0]}?"
    shown = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    return f"; there are: {shown}" if words else ""
