"""Sanity checks of a filter's security evaluation: an attack that fails because of a defect looks
like robustness.

The checks are those of a classifier (``security_checks``), with errors in place of accuracies, for
each replicate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.attackers import Injection
from components.contracts.checks import Check
from components.contracts.posteriors import FilteredStates
from components.contracts.victim import FilterVictim
from components.errors import ConfigMismatchError
from components.evaluation.replayed import ReplayedFilterVictim

# standard errors of a paired difference by which a stronger attack may appear weaker
SLACK = 3.0
# the same as a share of the error, for one replicate without a standard error
ALONE = 0.05
LEAST_GRADIENT = 0.05  # largest share of the attacked times without any gradient


@dataclass(frozen=True)
class SpoofingResult:
    """A filter under shifts of one budget: errors of each replicate [R]."""

    eps: float
    u: Tensor  # shifts in units of the noise [R, T, dy]
    rmse: Tensor
    nmse: Tensor
    error: Tensor  # the one of the two errors that the attacker increases
    random: Tensor  # the same error under random signs of the same size, at the same times


def check_not_weaker(name: str, strong: Tensor, weak: Tensor, where: str) -> Check:
    """Check that the error of one attack is at least the error of another.

    Errors are paired by replicate, with a tolerance for Monte-Carlo error.
    """
    difference = strong - weak
    r = len(difference)
    slack = SLACK * float(difference.std()) / math.sqrt(r) if r > 1 else ALONE * float(weak)
    detail = f"{float(strong.mean()):.4g} against {float(weak.mean()):.4g} {where}"
    return Check(name, float(difference.mean()) >= -slack - 1e-12, detail)


def budget_checks(
    attacker: Injection,
    rows: Sequence[SpoofingResult],
    struck: Tensor,
    run: ReplayedFilterVictim,
    posterior: FilteredStates,
) -> list[Check]:
    """Checks of the curve itself, without reference attacks."""
    clean = run.weighted_variance(run.filter(torch.zeros_like(run.observations)).mean).mean(1)
    nothing = run.weighted_variance(run.filter(rows[0].u).mean).mean(1)
    posterior_error = run.weighted_variance(posterior.mean).mean(1)
    excess = max(float((row.u.norm(dim=-1) - row.eps).max()) for row in rows)
    is_shifted = torch.stack([(row.u != 0).any(-1) for row in rows]).any(0)  # [R, T]
    outside = int((is_shifted & ~struck).sum())
    falls = [float((b.error - a.error).mean()) for a, b in itertools.pairwise(rows)]
    worst = min(range(len(falls)), key=falls.__getitem__) if falls else None
    checks = [
        Check(
            "a budget of 0 does not change the error",
            bool(torch.equal(clean, nothing)) and not bool(rows[0].u.any()),
            f"{float(nothing.mean().sqrt()):.4f} against {float(clean.mean().sqrt()):.4f}",
        ),
        check_same_filter(clean, posterior_error),
        Check(
            "no observation moves by more than ε",
            excess <= 1e-5 * max(1.0, rows[-1].eps),
            f"largest excess {excess:.2g}",
        ),
        Check(
            "only the attacker's share of times is shifted",
            outside == 0,
            f"{outside} others of {int(is_shifted.sum())}",
        ),
    ]
    if worst is not None:
        a = rows[worst]
        b = rows[worst + 1]
        checks.append(
            check_not_weaker(
                "a larger budget is not weaker", b.error, a.error, f"at ε = {b.eps:g} and {a.eps:g}"
            )
        )
    if attacker.references().get("random signs") is not None and len(rows) > 1:
        gap = min(rows[1:], key=lambda row: float((row.error - row.random).mean()))
        checks.append(
            check_not_weaker(
                "the attack is not weaker than random signs",
                gap.error,
                gap.random,
                f"at ε = {gap.eps:g}",
            )
        )
    return checks


def check_same_filter(again: Tensor, own: Tensor) -> Check:
    """Check that the attacked filter is the run's own: without attack it has the same error with
    other random numbers."""
    name = "the attacked filter is the run's own"
    difference = again - own
    detail = f"{float(again.mean().sqrt()):.4f} against {float(own.mean().sqrt()):.4f}"
    if len(own) == 1 and not torch.equal(again, own):
        return Check(name, None, f"{detail}; 1 replicate, 2 required")
    slack = 4 * float(difference.std()) / math.sqrt(len(own)) if len(own) > 1 else 0.0
    return Check(name, abs(float(difference.mean())) <= slack + 1e-9, detail)


def reference_checks(
    attacker: Injection,
    telling: SpoofingResult,
    judges: Mapping[str, Tensor],
    simulated: FilterVictim,
    struck: Tensor,
) -> list[Check]:
    """Comparison with reference attacks of the same budget, at the same times."""
    where = f"at ε = {telling.eps:g}, {len(telling.error)} replicates"
    checks = []
    black = judges["black box"]
    signs = judges["random signs"]
    one_step = judges["one step"]
    if attacker.knowledge_used() == "white box":
        checks.append(
            check_not_weaker(
                "a white box is not weaker than a black box", telling.error, black, where
            )
        )
        checks.append(
            check_not_weaker(
                "several steps are not weaker than one", telling.error, one_step, where
            )
        )
    checks.append(
        check_not_weaker("a black box is not weaker than random signs", black, signs, where)
    )
    try:
        _, slope = simulated.gradient(torch.zeros_like(simulated.observations))
    except ConfigMismatchError:
        return checks
    silent = float(((slope == 0).all(-1) & struck).sum()) / max(1, int(struck.sum()))
    checks.append(
        Check(
            "the gradient is not zero",
            silent <= LEAST_GRADIENT,
            f"zero at {silent:.1%} of the attacked times",
        )
    )
    return checks
