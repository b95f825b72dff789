"""Sanity checks of a security evaluation: an attack that fails for a bad reason looks like robustness.

Those of the curve cost nothing; those of the victim run reference attacks on a few rows at one telling size.  In the
spirit of Carlini et al. (2019), section 4, and Athalye et al. (2018), section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.evasion.random_noise import RandomNoise
from components.attackers.evasion.square import Square
from components.attackers.evasion.worst_case import WorstCase
from components.attackers.input_space import BoxSpace, input_space
from components.contracts.attackers import Evasion
from components.contracts.checks import Check
from components.contracts.streams import Rng
from components.contracts.victim import NormName, Victim
from components.problems.supervised import Supervised
from components.trouble import Misfit

if TYPE_CHECKING:
    import pandas as pd

SLACK = 0.01  # accuracy may rise by this much between neighbouring ε before the curve is called not falling
ROWS = 128  # test rows that the reference attacks see
NOISE = 0.02  # share of those rows by which the outcomes of two random attacks may differ the wrong way
STEPS, QUERIES = 20, 100
LEAST_GRADIENT = 0.05  # largest share of rows without any gradient


def curve_checks(
    attacker: Evasion, rows: pd.DataFrame, clean: float, extremes: list[tuple[float, float]], problem: Supervised
) -> list[Check]:
    """What can be read off the curve itself; the attack has to beat random signs unless it knows nothing (``black box``).

    Whether accuracy falls, and further than under noise, is asked of the classifier that the attack is aimed at."""
    aside = "undefended_accuracy" in rows
    hit, noise = ("undefended_accuracy", "undefended_random_accuracy") if aside else ("accuracy", "random_accuracy")
    whose = " of the undefended classifier, which the attack sees" if aside else ""
    rounding = 8 * torch.finfo(problem.test.x.dtype).eps * (1 + float(problem.test.x.abs().max()))
    slack = rounding * (1 + math.sqrt(problem.n_inputs))  # lengths add up the rounding of all coordinates
    excess = float((rows["max_perturbation"] - rows["eps"]).max())
    low, high = min(e[0] for e in extremes), max(e[1] for e in extremes)
    rise = float(rows[hit].diff().max()) if len(rows) > 1 else 0.0
    last, at_zero = rows.iloc[-1], float(rows["accuracy"].iloc[0])
    checks = [
        Check(
            "an attack of size 0 leaves the accuracy as it is", at_zero == clean, f"{at_zero:.4f} against {clean:.4f}"
        ),
        Check("no input moves by more than ε", excess <= slack, f"largest excess {excess:.2g}"),
        Check("accuracy falls as ε grows", rise <= SLACK, f"largest rise {rise:+.4f}{whose}"),
    ]
    if attacker.known() != "black box" or not input_space(problem).smooth:
        beats = bool(last["eps"] == 0 or last[hit] <= last[noise])
        told = f"{last[hit]:.4f} against {last[noise]:.4f} at ε = {last['eps']:g}{whose}"
        checks.append(Check("the attack beats random signs of the same size", beats, told))
    members = [str(column) for column in rows if str(column).startswith("accuracy/")]
    if members:
        excess = float((rows["accuracy"] - rows[members].min(axis=1)).max())
        told = f"above the lowest member by at most {max(excess, 0):.4f}"
        checks.append(Check("the worst case is no weaker than any member", excess <= 0, told))
    if problem.bounds is not None:
        inside = problem.bounds[0] <= low and high <= problem.bounds[1]
        told = f"[{low:.4g}, {high:.4g}] in {list(problem.bounds)}"
        checks.append(Check("attacked inputs stay in bounds", inside, told))
    return checks


def telling_size(rows: pd.DataFrame) -> float:
    """The ε > 0 whose accuracy is nearest to half of the clean one: there attacks differ most; 0 where there is none."""
    attacked = rows[rows["eps"] > 0]
    if attacked.empty:
        return 0.0
    distance = (attacked["accuracy"] - rows["accuracy"].iloc[0] / 2).abs()
    return float(attacked["eps"][distance.idxmin()])


@dataclass(frozen=True)
class References:
    """Attacks on a few rows of the test set, by which the attack under test and the victim's gradient are judged."""

    victim: Victim
    x: Tensor  # [B, D]
    y: Tensor  # [B, T]
    rng: Rng
    norm: NormName
    eps: float

    def climb(
        self, steps: int, step_size: float, eps: float | None = None, random_start: bool = False, restarts: int = 1
    ) -> Tensor:
        # Where predictions are random, a row that stops where it is broken once is right again half of the time.
        settings = Ascent(self.norm, steps, step_size, random_start, restarts, stop_when_broken=False)
        size = self.eps if eps is None else eps
        return ascend(self.victim, self.x, self.y, self.rng.at("attack", 2), size, settings)

    def standing(self, x: Tensor) -> Tensor:
        """Rows of which every label is still right [B] bool."""
        return ~self.victim.broken(x, self.y, self.rng.at("evaluation", 0)) & (self.y >= 0).any(1)

    def black_box(self) -> Tensor:
        """x' of an attack with ``QUERIES`` queries."""
        attack: Evasion
        if self.norm == "linf":
            attack = Square(name="square", queries=QUERIES, p=0.8, target=None)
        else:
            attack = RandomNoise(name="random_noise", norm=self.norm, repeats=QUERIES)
        return attack.perturb(self.victim, self.x, self.y, self.rng, self.eps)

    def log_prob(self, x: Tensor) -> float:
        with torch.no_grad():
            return float(self.victim.log_prob(x, self.y, self.rng.at("evaluation", 0)).mean())


def victim_checks(
    attacker: Evasion, victim: Victim, problem: Supervised, y: Tensor, rng: Rng, norm: NormName, eps: float
) -> list[Check]:
    """What reference attacks of size ε show on the first ``ROWS`` test rows; nothing where the victim has no gradient."""
    x, y = problem.test.x[:ROWS], y[:ROWS]
    try:
        gradient = victim.input_gradient(x, y, rng.at("attack", 2))
    except Misfit:
        return []
    reference = References(victim, x, y, rng, norm, eps)
    standing, n = reference.standing, len(x)
    slack = max(NOISE, 1.5 / n)

    def share(rows: Tensor) -> float:
        return float(rows.double().mean())

    def no_higher(name: str, strong: float, weak: float, tolerance: float = slack) -> Check:
        return Check(name, strong <= weak + tolerance, f"{strong:.4f} against {weak:.4f} at ε = {eps:g}, {n} rows")

    one = share(standing(reference.climb(1, 1.0)))
    many = standing(reference.climb(STEPS, 2.5 / STEPS, random_start=True))
    more = standing(reference.climb(2 * STEPS, 1.25 / STEPS, random_start=True, restarts=2))
    noise = share(standing(input_space(problem).at_random(x, y, eps, norm, rng.at("attack", 1))))
    judged = attacker.insiders if isinstance(attacker, WorstCase) else attacker
    own = standing(judged.perturb(victim, x, y, rng, eps))
    black = share(standing(reference.black_box()))
    knowledge = attacker.known()
    white_box = knowledge == "white box"
    white = share(many & more & own) if white_box else share(many & more)
    silent = share((gradient == 0).all(1) & (y >= 0).any(1))
    checks = [
        no_higher("an iterative attack is no weaker than one step", share(many), one),
        no_higher("a white box is no weaker than a black box", white, black),
        no_higher("more steps and restarts do not help the defender", share(more), share(many)),
        no_higher("noise is weaker than the gradient", share(many), noise, 0.0),
        _loss_rises(reference),
        _unbounded(reference, problem),
        Check("the gradient is not zero", silent <= LEAST_GRADIENT, f"zero in {silent:.1%} of {n} rows"),
    ]
    if not white_box:
        checks.append(no_higher(f"a white box is no weaker than this {knowledge}", white, share(own)))
    if white_box and attacker.iterates() and norm == "linf":
        checks.append(no_higher("the attack, of several steps, is no weaker than one step", share(own), one))
    return checks


def _loss_rises(reference: References) -> Check:
    few = reference.climb(3, 2.5 / STEPS)
    many = reference.climb(STEPS, 2.5 / STEPS)
    loss = [-reference.log_prob(x) for x in (reference.x, few, many)]
    rises = loss[0] <= loss[1] <= loss[2]
    return Check("the loss rises during the attack", rises, " → ".join(f"{value:.4g}" for value in loss))


def _unbounded(reference: References, problem: Supervised) -> Check:
    """With the whole domain as its ball, an attack leaves no more right than guessing does."""
    x = problem.test.x
    low, high = problem.bounds if problem.bounds is not None else (10 * float(x.min()), 10 * float(x.max()))
    size = BoxSpace((low, high), problem.n_inputs).largest(reference.norm)
    left = float(reference.standing(reference.climb(STEPS, 2.5 / STEPS, size)).double().mean())
    chance, n = 1 / problem.n_classes, len(reference.x)
    most = chance + 3 * math.sqrt(chance * (1 - chance) / n)
    told = f"{left:.4f} against {chance:.4f} at ε = {size:g}"
    return Check("an unbounded attack reaches chance", left <= most, told)
