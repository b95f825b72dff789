"""Checks of a victim by reference attacks, which must not be stronger than the attacker."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from components.attackers.criteria import RANKS
from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.evasion.random_noise import RandomNoise
from components.attackers.evasion.square import Square
from components.attackers.evasion.worst_case import WorstCase
from components.attackers.input_space import BoxSpace, input_space
from components.contracts.attackers import Evasion
from components.contracts.checks import Check
from components.contracts.streams import Rng
from components.contracts.victim import Criterion, NormName, Victim
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised

ROWS = 128  # number of test rows for the reference attacks


# share of those rows by which the outcomes of two random attacks may differ in the wrong direction
NOISE = 0.02


STEPS = 20


QUERIES = 100


LEAST_GRADIENT = 0.05  # largest share of rows without any gradient


TIE = "indistinguishable, {}"


def less(name: str, value: float, other: float, detail: str) -> Check:
    """Check that a value is below another; equal values are indistinguishable and neither pass nor
    fail."""
    return (
        Check(name, None, TIE.format(detail))
        if value == other
        else Check(name, value < other, detail)
    )


@dataclass(frozen=True)
class References:
    """Reference attacks on a few test rows, for checks of the attack and of the victim's gradient.

    Ascent follows the criterion of the attack under test, the margin, which is not affected by
    scale or saturation of the logits, and the cross entropy, which includes all classes, not only
    the closest one.
    """

    victim: Victim
    x: Tensor  # [B, D]
    y: Tensor  # [B, T]
    rng: Rng
    norm: NormName
    eps: float
    criterion: Criterion  # of the attack under test

    @property
    def criteria(self) -> list[Criterion]:
        """The attack's own criterion and the two standard ones."""
        return list(dict.fromkeys((self.criterion, "margin", "cross_entropy")))

    def climb(self, criterion: Criterion, steps: int, step_size: float, **keys: Any) -> Tensor:
        """x' of an ascent without early stopping, with ``eps`` and the keys of ``Ascent``."""
        # with random predictions, a row stopped at its first misclassification is correct again
        # half of the time
        size = keys.pop("eps", self.eps)
        settings = Ascent(
            self.norm, steps, step_size, criterion=criterion, stop_when_broken=False, **keys
        )
        return ascend(self.victim, self.x, self.y, self.rng.at("attack", 2), size, settings)

    def standing(self, x: Tensor) -> Tensor:
        """True for rows with every label still predicted correctly [B] bool."""
        return ~self.victim.broken(x, self.y, self.rng.at("evaluation", 0)) & (self.y >= 0).any(1)

    def find_surviving_rows(self, steps: int, step_size: float, **keys: Any) -> Tensor:
        """True for rows with every label still correct after ascent along all criteria [B] bool."""
        climbs = [
            self.standing(self.climb(criterion, steps, step_size, **keys))
            for criterion in self.criteria
        ]
        return torch.stack(climbs).all(0)

    def find_missed_rows(self, x: Tensor, target: int) -> Tensor:
        """True for rows of other classes that are not classified as the target [.] bool."""
        aimed = torch.full_like(self.y, target)
        missed = self.victim.broken(x, aimed, self.rng.at("evaluation", 0))
        return missed[(self.y != target).any(1) & (self.y >= 0).any(1)]

    def black_box(self) -> Tensor:
        """x' of an attack with ``QUERIES`` queries."""
        attack: Evasion
        if self.norm == "linf":
            attack = Square(name="square", queries=QUERIES, p=0.8, target=None)
        else:
            attack = RandomNoise(name="random_noise", norm=self.norm, repeats=QUERIES)
        return attack.perturb(self.victim, self.x, self.y, self.rng, self.eps)

    def loss(self, x: Tensor, criterion: Criterion) -> float:
        """Minus the mean of the criterion; for cross entropy of its logarithm, which is not bounded
        at 0."""
        with torch.no_grad():
            answers = self.victim.answers(x, self.rng.at("evaluation", 0))
            return -float(RANKS[criterion](answers, self.y).mean())


def victim_checks(
    attacker: Evasion,
    victim: Victim,
    problem: Supervised,
    y: Tensor,
    rng: Rng,
    norm: NormName,
    eps: float,
    target: int | None = None,
) -> list[Check]:
    """Checks by reference attacks of size ε on the first ``ROWS`` test rows.

    Empty if the victim has no gradient.  ``target`` is the target class of the attack.
    """
    x = problem.test.x[:ROWS]
    y = y[:ROWS]
    criterion = attacker.minimised_criterion()
    try:
        answer = victim.soften().answer(x, y, rng.at("attack", 2), criterion)
    except ConfigMismatchError:
        return []
    reference = References(victim, x, y, rng, norm, eps, criterion)
    standing = reference.standing
    n = len(x)
    slack = max(NOISE, 1.5 / n)

    def share(rows: Tensor) -> float:
        return float(rows.double().mean())

    def no_higher(name: str, strong: float, weak: float) -> Check:
        return Check(
            name,
            strong <= weak + slack,
            f"{strong:.4f} against {weak:.4f} at ε = {eps:g}, {n} rows",
        )

    one_step = share(reference.find_surviving_rows(1, 1.0))
    many = reference.find_surviving_rows(STEPS, 2.5 / STEPS, random_start=True)
    more = reference.find_surviving_rows(2 * STEPS, 1.25 / STEPS, random_start=True, restarts=2)
    noise = share(
        standing(input_space(problem).perturb_at_random(x, y, eps, norm, rng.at("attack", 1)))
    )
    judged = attacker.most_informed_members if isinstance(attacker, WorstCase) else attacker
    attacked = judged.perturb(victim, x.clone(), y.clone(), rng, eps)
    survivors = standing(attacked)
    black = share(standing(reference.black_box()))
    knowledge = attacker.knowledge_used()
    white_box = knowledge == "white box"
    white = share(many & more & survivors) if white_box else share(many & more)
    silent = share((answer.gradient == 0).all(1) & (y >= 0).any(1))
    checks = [
        no_higher("an iterative attack is not weaker than one step", share(many), one_step),
        no_higher("a white box is not weaker than a black box", white, black),
        no_higher("more steps and restarts do not help the defender", share(more), share(many)),
        less(
            "noise is weaker than the gradient",
            share(many),
            noise,
            f"{share(many):.4f} against {noise:.4f} at ε = {eps:g}, {n} rows",
        ),
        _check_loss_rise(reference),
        _check_unbounded_attack(reference, problem),
        Check(
            "the gradient is not zero",
            silent <= LEAST_GRADIENT,
            f"zero in {silent:.1%} of {n} rows",
        ),
        _finite(
            answer.finite
            & victim.soften().answer(attacked, y, rng.at("attack", 2), criterion).finite
        ),
    ]
    if not white_box:
        checks.append(
            no_higher(f"a white box is not weaker than this {knowledge}", white, share(survivors))
        )
    if white_box and attacker.is_iterative() and norm == "linf":
        step = share(standing(reference.climb(criterion, 1, 1.0)))
        checks.append(
            no_higher(
                "the attack, of several steps, is not weaker than one step", share(survivors), step
            )
        )
    if white_box and target is not None:
        aimed = replace(reference, y=torch.where(y >= 0, target, y)).climb(
            criterion, 1, 1.0, target=target
        )
        missed = [share(reference.find_missed_rows(z, target)) for z in (attacked, aimed)]
        checks.append(
            no_higher("the attack misses its target no more often than one step", *missed)
        )
    return checks


def _finite(rows: Tensor) -> Check:
    """Check for infinite derivatives, which steps omit, so that the attack uses only part of the
    gradient."""
    bad = int((~rows).sum())
    n = len(rows)
    detail = f"an infinite or NaN derivative in {bad} of {n} rows; omitted"
    return Check("the gradient is finite", bad == 0, detail if bad else f"in all of {n} rows")


def _check_loss_rise(reference: References) -> Check:
    """Check that a longer ascent reaches a larger loss for every criterion."""
    name = "the loss rises during the attack"
    details = []
    verdicts = []
    for criterion in reference.criteria:
        climbs = [reference.climb(criterion, steps, 2.5 / STEPS) for steps in (3, STEPS)]
        first, few, many = (reference.loss(x, criterion) for x in (reference.x, *climbs))
        verdicts.append(None if first == few == many else first <= few <= many)
        details.append(f"{criterion} {first:.4g} → {few:.4g} → {many:.4g}")
    if all(verdict is None for verdict in verdicts):
        return Check(name, None, TIE.format("; ".join(details)))
    return Check(name, False not in verdicts, "; ".join(details))


def _check_unbounded_attack(reference: References, problem: Supervised) -> Check:
    """Check that an attack with the whole domain as ball reduces accuracy to chance."""
    x = problem.test.x
    low, high = (
        problem.bounds if problem.bounds is not None else (10 * float(x.min()), 10 * float(x.max()))
    )
    size = BoxSpace((low, high), problem.n_inputs).largest(reference.norm)
    accuracy = float(reference.find_surviving_rows(STEPS, 2.5 / STEPS, eps=size).double().mean())
    chance = 1 / problem.n_classes
    n = len(reference.x)
    most = chance + 3 * math.sqrt(chance * (1 - chance) / n)
    detail = f"{accuracy:.4f} against {chance:.4f} at ε = {size:g}"
    return Check("an unbounded attack reaches chance", accuracy <= most, detail)
