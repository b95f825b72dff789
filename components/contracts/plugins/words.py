"""Words that a class declares for protocols: their names in snake case, for example log_joint."""

from __future__ import annotations

import re


def by_word(*protocols: type) -> dict[str, type]:
    """The protocols by their words."""
    return {re.sub(r"(?<=.)(?=[A-Z])", "_", cls.__name__).lower(): cls for cls in protocols}
