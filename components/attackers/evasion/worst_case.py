"""The point-wise worst case over several attacks."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from components.attackers.norms import NormName
from components.attackers.victim import Victim, misjudged, summed
from components.contracts.problems import Domain
from components.contracts.roles import Attacker, Evasion, Knowledge
from components.contracts.streams import Rng
from components.evaluation.threat import Sizes
from components.registry import register

KNOWLEDGE: tuple[Knowledge, ...] = ("white box", "grey box", "black box")  # the most first


@register("attacker", "worst_case")
class WorstCase(Evasion):
    """Point-wise worst case over several attacks: every row keeps the strongest result of the members.

    x' = argmin_m log p(y|x'_m) over the x'_m of those members that break the row, or of all where none does; ‖x'_m − x‖ ≤ ε
    for each.  A row counts as robust only where it withstands every member, so that no curve of a member lies below.
    A security evaluation also has a column for each member, which is what that attack alone would give.
    x [B, D], y [B, T].

    Source: Croce and Hein (2020), section 5."""

    shares: ClassVar[frozenset[str]] = frozenset({"eps", "norm"})  # keys that members take over from here

    eps: Sizes
    norm: NormName
    members: Annotated[list[Attacker], Field(min_length=1)]

    @model_validator(mode="after")
    def _comparable(self) -> WorstCase:
        for member in self.members:
            if member.domain != self.domain:
                one, other = self.members[0], member
                raise ValueError(
                    f"members: {one.name} attacks {one.domain} inputs, {other.name} {other.domain} ones; take one kind"
                )
            if (norm := getattr(member, "norm", self.norm)) != self.norm:
                raise ValueError(
                    f"members: {member.name} is bounded in {norm}, the worst case in {self.norm}; use norm={norm} for all, "
                    f"or leave {member.name} out"
                )
            if (eps := getattr(member, "eps", self.eps)) != self.eps:
                raise ValueError(
                    f"members: {member.name} has sizes of its own, {eps}; give them to the worst case, as eps"
                )
        return self

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.members[0].domain

    @property
    def knowledge(self) -> Knowledge:  # type: ignore[override]
        """What the member knows who knows most."""
        return min((member.knowledge for member in self.members), key=KNOWLEDGE.index)

    @property
    def insiders(self) -> WorstCase:
        """The worst case of the members who know most: what is to be no weaker than any attack that knows less."""
        return self.model_copy(update={"members": [m for m in self.members if m.knowledge == self.knowledge]})

    @property
    def labelled(self) -> dict[str, Any]:
        """Members by name; of one attack taken twice, by the keys too in which the two differ."""
        count = Counter(member.name for member in self.members)
        out: dict[str, Any] = {}
        for i, member in enumerate(self.members):
            same = [other for other in self.members if other.name == member.name]
            keys = [k for k in type(member).model_fields if len({repr(getattr(other, k)) for other in same}) > 1]
            label = member.name + "".join(f" {k}={getattr(member, k)}" for k in keys if count[member.name] > 1)
            out[label if label not in out else f"{label} ({i + 1})"] = member
        return out

    def informed(self, problem: Any, rng: Rng) -> WorstCase:
        return self.model_copy(update={"members": [member.informed(problem, rng) for member in self.members]})

    def relentless(self) -> WorstCase:
        return self.model_copy(update={"members": [member.relentless() for member in self.members]})

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        found = [member.perturb(victim.facing(member), x, y, rng, eps) for member in self.labelled.values()]
        return strongest(victim, found, y, rng.attack)

    def random(self, x: Tensor, y: Tensor, eps: float, generator: torch.Generator) -> Tensor:
        """The control of the first member: as many words chosen at random."""
        first: Any = self.members[0]
        return first.random(x, y, eps, generator)


def strongest(victim: Victim, found: list[Tensor], y: Tensor, generator: torch.Generator) -> Tensor:
    """Of several x' [B, D] the one, for each row, that breaks it at the smallest log p(y|x'), or only has the smallest.

    Where predictions are random all are judged by the same draws."""
    best, lowest = found[0], torch.full_like(found[0][:, 0], torch.inf)
    broken = torch.zeros_like(lowest, dtype=torch.bool)
    draws = generator.get_state()
    for candidate in found:
        generator.set_state(draws)
        with torch.no_grad():
            predictive = victim.answers(candidate, generator)
        value, breaks = summed(predictive, y), misjudged(predictive, y)
        better = (breaks & ~broken) | ((breaks == broken) & (value < lowest))
        best = torch.where(better.unsqueeze(1), candidate, best)
        lowest, broken = torch.where(better, value, lowest), broken | breaks
    return best
