"""The sizes ε of a security evaluation curve, as every evasion attacker declares them."""

from __future__ import annotations

import itertools
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat


def _increasing(eps: list[float]) -> list[float]:
    if not eps or any(b <= a for a, b in itertools.pairwise(eps)):
        raise ValueError(f"eps: must be a list of increasing sizes, e.g. [0.0, 0.1, 0.2], not {eps}")
    return eps


Sizes = Annotated[list[NonNegativeFloat], AfterValidator(_increasing)]
