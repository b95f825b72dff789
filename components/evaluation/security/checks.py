"""Sanity checks of a security evaluation.

An attack that fails because of a defect looks like robustness.  Checks of the curve are free;
checks of the victim run reference attacks on a few rows at one informative size.  They follow
Carlini et al. (2019), section 4, and Athalye et al. (2018), section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from components.attackers.input_space import input_space
from components.contracts.attackers import Evasion
from components.contracts.checks import Check
from components.problems.supervised import Supervised

if TYPE_CHECKING:
    import pandas as pd
from components.evaluation.security.victim_checks import less

# largest rise of accuracy between neighbouring ε that still counts as falling
SLACK = 0.01


def curve_checks(
    attacker: Evasion,
    rows: pd.DataFrame,
    clean: float,
    extremes: list[tuple[float, float]],
    problem: Supervised,
) -> list[Check]:
    """Checks of the curve itself.

    The attack must beat random signs unless it has no knowledge (``black box``).  The accuracy of
    the attacked classifier must fall, and further than under noise; for an attack with a target,
    the number of rows classified as the target must rise.
    """
    aside = "undefended_accuracy" in rows
    whose = " of the undefended classifier, which is attacked" if aside else ""
    prefix = "undefended_" if aside else ""
    targeted = "target_reached" in rows
    column = "target_reached" if targeted else "accuracy"
    sign = -1.0 if targeted else 1.0  # sign of the quantity that an attack decreases
    hit = sign * rows[f"{prefix}{column}"]
    noise = sign * rows[f"{prefix}random_{column}"]
    rounding = 8 * torch.finfo(problem.test.x.dtype).eps * (1 + float(problem.test.x.abs().max()))
    # norms accumulate the rounding of all coordinates
    slack = rounding * (1 + math.sqrt(problem.n_inputs))
    excess = float((rows["max_perturbation"] - rows["eps"]).max())
    rise = float(hit.diff().max()) if len(rows) > 1 else 0.0
    at_zero = float(rows["accuracy"].iloc[0])
    largest = float(rows["eps"].iloc[-1])
    falls = "the target is reached more often" if targeted else "accuracy falls"
    moves = "fall" if targeted else "rise"
    checks = [
        Check(
            "an attack of size 0 does not change the accuracy",
            at_zero == clean,
            f"{at_zero:.4f} against {clean:.4f}",
        ),
        Check("no input moves by more than ε", excess <= slack, f"largest excess {excess:.2g}"),
        Check(f"{falls} as ε grows", rise <= SLACK, f"largest {moves} {sign * rise:+.4f}{whose}"),
    ]
    if attacker.knowledge_used() != "black box" or not input_space(problem).smooth:
        name = "the attack beats random signs of the same size"
        detail = f"{sign * hit.iloc[-1]:.4f} against {sign * noise.iloc[-1]:.4f} at ε = {largest:g}{whose}"
        detail += ", rows classified as the target" if targeted else ""
        checks.append(less(name, float(hit.iloc[-1]), float(noise.iloc[-1]), detail))
    checks += _check_members(rows, column, sign)
    checks += _check_predictions(rows, problem)
    if problem.bounds is not None:
        low = min(e[0] for e in extremes)
        high = max(e[1] for e in extremes)
        inside = problem.bounds[0] <= low and high <= problem.bounds[1]
        detail = f"[{low:.4g}, {high:.4g}] in {list(problem.bounds)}"
        checks.append(Check("attacked inputs stay in bounds", inside, detail))
    return checks


def _check_predictions(rows: pd.DataFrame, problem: Supervised) -> list[Check]:
    """Failed check with the number of attacked inputs without a finite prediction; empty if there
    are none."""
    worst = max(rows.to_dict("records"), key=lambda row: int(row["unpredicted"]))
    fix = "set" if problem.bounds is None else "narrow"
    detail = (
        f"{worst['unpredicted']} of {len(problem.test.x)} attacked inputs have no finite prediction at ε = {worst['eps']:g}, "
        f"{fix} dataset.bounds; they count as broken, and robust_nlpp, robust_ece and "
        f"robust_entropy omit them"
    )
    check = Check("attacked inputs have finite predictions", False, detail)
    return [check] if worst["unpredicted"] else []


def _check_members(rows: pd.DataFrame, column: str, sign: float) -> list[Check]:
    """Compare an attack with each of its members, if it has any."""
    members = [str(name) for name in rows if str(name).startswith(f"{column}/")]
    if not members:
        return []
    excess = float((sign * rows[column] - (sign * rows[members]).min(axis=1)).max())
    side = "above the lowest" if sign > 0 else "below the highest"
    detail = f"{side} member by at most {max(excess, 0):.4f}"
    return [Check("the worst case is not weaker than any member", excess <= 0, detail)]


def check_certificates(contradictions: Mapping[float, int], labels: int) -> list[Check]:
    """Compare certificates with the attack and with noise for every label; empty without
    certificates."""
    if not contradictions:
        return []
    most = max(contradictions.values())
    detail = (
        f"{most} of {labels} labels are certified and broken, at the worst of "
        f"{len(contradictions)} sizes"
    )
    return [Check("no certified label is broken", most == 0, detail)]


def half_accuracy_eps(rows: pd.DataFrame) -> float:
    """The ε > 0 with accuracy closest to half of the clean accuracy; 0 without any ε > 0.

    Attacks differ most there.
    """
    attacked = rows[rows["eps"] > 0]
    if attacked.empty:
        return 0.0
    distance = (attacked["accuracy"] - rows["accuracy"].iloc[0] / 2).abs()
    return float(attacked["eps"][distance.idxmin()])
