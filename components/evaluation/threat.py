"""The sizes ε of a security evaluation curve, as every evasion attacker declares them."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any

from pydantic import AfterValidator, NonNegativeFloat

from components.trouble import Misfit


def _increasing(eps: list[float]) -> list[float]:
    if not eps or any(b <= a for a, b in itertools.pairwise(eps)):
        raise ValueError(f"eps: must be a list of increasing sizes, e.g. [0.0, 0.1, 0.2], not {eps}")
    return eps


Sizes = Annotated[list[NonNegativeFloat], AfterValidator(_increasing)]


def whole_domain(bounds: tuple[float, float], inputs: int, norm: str) -> float:
    """Size of the smallest ball around any input that holds all the others."""
    return (bounds[1] - bounds[0]) * {"linf": 1.0, "l2": math.sqrt(inputs), "l1": float(inputs)}[norm]


def check_sizes(attacker: Any, problem: Any) -> None:
    """Sizes in the units of the inputs: none larger than the whole range of what an input can be.

    Raises:
        Misfit: the largest ε moves any input to any other, as grey levels do where the inputs lie in [0, 1].
    """
    if problem.bounds is None or getattr(problem, "domain", "continuous") != "continuous":
        return
    norm = getattr(attacker, "norm", "linf")
    largest, most = max(attacker.eps), whole_domain(problem.bounds, problem.n_inputs, norm)
    if largest > most * (1 + 1e-9):
        low, high = problem.bounds
        raise Misfit(
            f"attacker.eps: {largest:g} leads from any input of {problem.name} to any other (they lie in [{low:g}, "
            f"{high:g}], {norm} size at most {most:g}); give sizes in those units, e.g. 8/255 = 0.0314 for 8 grey levels"
        )
