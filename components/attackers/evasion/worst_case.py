"""The point-wise worst case over several attacks."""

from __future__ import annotations

from collections import Counter

import torch
from pydantic import model_validator
from torch import Tensor

from components.attackers.criteria import certainty, is_misclassified
from components.attackers.evasion.loop import Endpoints
from components.contracts.attackers import Evasion
from components.contracts.problems import Domain
from components.contracts.roles import NonEmptyList, Problem
from components.contracts.streams import Rng
from components.contracts.victim import Knowledge, Measure, NormName, Victim
from components.registry import register

KNOWLEDGE: tuple[Knowledge, ...] = ("white box", "grey box", "black box")  # in decreasing order


@register("attacker", "worst_case")
class WorstCase(Evasion):
    """Point-wise worst case over several attacks: the strongest result of the members per row.

    x' = argmin_m log p(y|x'_m) over the x'_m of the members that break the row, or of all
    members if none does; ‖x'_m − x‖ ≤ ε for each.  A row counts as robust only if it withstands
    every member, so its curve is a lower bound of the members' curves.  A security evaluation also
    has a column for each single member. x [B, D], y [B, T].

    Source: Croce and Hein (2020), section 5.
    """

    domain = None
    # keys inherited by members
    inherited_keys = {"eps", "norm"}
    one_threat = True

    norm: NormName
    members: NonEmptyList[Evasion]

    @model_validator(mode="after")
    def _check_comparable(self) -> WorstCase:
        for member in self.members:
            if member.inputs() != self.inputs():
                first = self.members[0]
                other = member
                raise ValueError(
                    f"members: {first.name} attacks {first.inputs()} inputs, but {other.name} "
                    f"attacks {other.inputs()} inputs; use members of one kind"
                )
            if member.inputs() == "continuous" and (norm := member.measure()) != self.norm:
                raise ValueError(
                    f"members: {member.name} is bounded in {norm}, but the worst case is "
                    f"bounded in {self.norm}; use norm={norm} for all, or remove {member.name}"
                )
        return self

    def inputs(self) -> Domain:
        return self.members[0].inputs()

    def measure(self) -> Measure:
        return self.members[0].measure()

    def target_labels(self) -> frozenset[int | str | None]:
        return frozenset().union(*(member.target_labels() for member in self.members))

    def check_target(self, problem: Problem, key: str) -> None:
        for i, member in enumerate(self.members):
            member.check_target(problem, f"{key}.members.{i}")

    def knowledge_used(self) -> Knowledge:
        """Knowledge of the most informed member."""
        return min((member.knowledge_used() for member in self.members), key=KNOWLEDGE.index)

    @property
    def most_informed_members(self) -> WorstCase:
        """The worst case of the most informed members, which should be at least as strong as less
        informed attacks."""
        return self.model_copy(
            update={
                "members": [m for m in self.members if m.knowledge_used() == self.knowledge_used()]
            }
        )

    @property
    def members_by_label(self) -> dict[str, Evasion]:
        """Members by name; repeated attacks also by the keys in which they differ."""
        count = Counter(member.name for member in self.members)
        out: dict[str, Evasion] = {}
        for i, member in enumerate(self.members):
            options = dict(member)
            same = [dict(other) for other in self.members if other.name == member.name]
            keys = [k for k in options if len({repr(other[k]) for other in same}) > 1]
            label = member.name + "".join(
                f" {k}={options[k]}" for k in keys if count[member.name] > 1
            )
            out[label if label not in out else f"{label} ({i + 1})"] = member
        return out

    def with_problem(self, problem: Problem, rng: Rng) -> WorstCase:
        return self.model_copy(
            update={"members": [member.with_problem(problem, rng) for member in self.members]}
        )

    def without_early_stop(self) -> WorstCase:
        return self.model_copy(
            update={"members": [member.without_early_stop() for member in self.members]}
        )

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        candidates = [
            member.perturb(victim.facing(member.gradient_source()), x.clone(), y, rng, eps)
            for member in self.members_by_label.values()
        ]
        return strongest(victim, candidates, y, rng.attack, find_single_target(self))


def find_single_target(attacker: Evasion) -> int | None:
    """The common target class of an informed attack and all its members; None if there is none."""
    target_labels = attacker.target_labels()
    number = next(iter(target_labels)) if len(target_labels) == 1 else None
    return number if isinstance(number, int) else None


def strongest(
    victim: Victim,
    found: list[Tensor],
    y: Tensor,
    generator: torch.Generator,
    target: int | None,
) -> Tensor:
    """Strongest of several x' [B, D] for each row.

    Among the x' that break the row (or all if none does) it has the smallest log p(y|x').  With a
    ``target`` it has the largest log p(target|x') among the x' classified as the target (or all if
    none is).  For random predictions, all are judged by the same draws.
    """
    labels, sign = (y, 1.0) if target is None else (torch.where(y >= 0, target, y), -1.0)
    best = Endpoints(found[0])
    rows = best.rows(pending=False)
    draws = generator.get_state()
    for candidate in found:
        generator.set_state(draws)
        with torch.no_grad():
            predictive = victim.answers(candidate, generator)
        breaks = is_misclassified(predictive, labels) == (target is None)
        best.offer(rows, candidate, -sign * certainty(predictive, labels), breaks)
    return best.points
