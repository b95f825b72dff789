"""The threat of a run: norm and sizes of the attacks that a posterior is evaluated at.

Both are set with the attack's own keys, ``attacker.norm`` and ``attacker.eps``; the
attack keeps the norm where its moves depend on it, and receives one size at a time.
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
    """The keys of an attacker's YAML that are the evaluation's."""

    eps: Sizes


class WordGrid(Grid):
    """Keys of the evaluation for an attack on words, which changes whole words."""

    eps: Annotated[Sizes, AfterValidator(_whole)]


@dataclass(frozen=True)
class Threat:
    """Norm and sizes that an attack is evaluated at."""

    norm: Measure
    sizes: tuple[float, ...]  # ε, increasing, in the units of the inputs

    def check(self, problem: Problem) -> None:
        """Check that no size exceeds the whole range of an input.

        Raises:
            ConfigMismatchError: the largest ε moves any input to any other, as grey levels do
                where the inputs lie in [0, 1].
        """
        if isinstance(problem, Supervised):
            input_space(problem).check_sizes(self.sizes, self.norm, problem.name)


def threat_grid_class(attacker: type[Evasion] | type[Injection]) -> type[Grid]:
    """Class that validates the threat's keys for a class of attackers."""
    return WordGrid if issubclass(attacker, Evasion) and attacker.domain == "binary" else Grid


def build_threat(attacker: Evasion | Injection, eps: Iterable[float]) -> Threat:
    """The threat of an attacker at the sizes set with its keys."""
    return Threat(attacker.measure(), tuple(threat_grid_class(type(attacker))(eps=list(eps)).eps))
