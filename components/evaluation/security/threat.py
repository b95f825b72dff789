"""The threat of a run: norm and sizes of the attacks in an evaluation.

Both are set by keys of the attacker, ``attacker.norm`` and ``attacker.eps``; the attack uses the
norm if its steps depend on it, and receives one size at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat

from components.attackers.input_space import input_space
from components.contracts.attackers import Evasion, Injection
from components.contracts.roles import Problem, StrictKeys
from components.contracts.victim import Measure
from components.problems.supervised import Supervised


def _check_increasing_eps(eps: list[float]) -> list[float]:
    if not eps or any(b <= a for a, b in itertools.pairwise(eps)):
        raise ValueError(
            f"eps: must be a list of increasing sizes, e.g. [0.0, 0.1, 0.2], not {eps}"
        )
    return eps


def _whole(eps: list[float]) -> list[float]:
    if any(e != int(e) for e in eps):
        raise ValueError(f"eps: must be whole numbers of changed words, e.g. [0, 1, 2], not {eps}")
    return eps


Sizes = Annotated[list[NonNegativeFloat], AfterValidator(_check_increasing_eps)]


class Grid(StrictKeys, allow_inf_nan=False):
    """Keys of an attacker's YAML for the evaluation."""

    eps: Sizes


class WordGrid(Grid):
    """Keys of the evaluation for an attack on words, which changes whole words."""

    eps: Annotated[Sizes, AfterValidator(_whole)]


@dataclass(frozen=True)
class Threat:
    """Norm and sizes of an evaluated attack."""

    norm: Measure
    sizes: tuple[float, ...]  # ε, increasing, in the units of the inputs

    def check(self, problem: Problem) -> None:
        """Check that no size exceeds the whole range of an input.

        Raises:
            ConfigMismatchError: the largest ε can change any input into any other, for example with
            grey levels as sizes for inputs in [0, 1].
        """
        if isinstance(problem, Supervised):
            input_space(problem).check_sizes(self.sizes, self.norm, problem.name)


def threat_grid_class(attacker: type[Evasion] | type[Injection]) -> type[Grid]:
    """Class for validating the threat's keys for a class of attackers."""
    return WordGrid if issubclass(attacker, Evasion) and attacker.domain == "binary" else Grid


def build_threat(attacker: Evasion | Injection, eps: Iterable[float]) -> Threat:
    """The threat of an attacker at the sizes set with its keys."""
    return Threat(attacker.measure(), tuple(threat_grid_class(type(attacker))(eps=list(eps)).eps))
