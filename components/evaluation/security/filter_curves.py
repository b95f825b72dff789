"""Security evaluation of a filter: its error by the budget of an attacker that shifts its
observations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.attackers import Injection
from components.contracts.checks import NamedScores, check_same_shape
from components.contracts.posteriors import FilteredStates
from components.contracts.progress import count_parts
from components.contracts.streams import Rng
from components.evaluation.assessment import (
    Assessment,
    size_suffix,
    tabulate_attack,
    warn_of_failures,
)
from components.evaluation.replayed import (
    PosteriorProvenance,
    ReplayedFilterVictim,
    budget_unit,
    state_error_weights,
)
from components.evaluation.security.filter_checks import (
    SpoofingResult,
    budget_checks,
    reference_checks,
)
from components.evaluation.security.threat import Threat
from components.series.scores import filtering
from components.series.sequence import Sequence

if TYPE_CHECKING:
    import pandas as pd

    from components.figures.style import Figures


def doubling_budget(sizes: list[float], errors: Tensor) -> tuple[Tensor, Tensor]:
    """Budget at which the error of each replicate is twice that at budget 0, by linear
    interpolation, and True if it doubles.  If it does not, the result is the largest budget, a
    lower bound.  NaN errors count as infinite.  Errors [S, R] -> [R], [R]."""
    errors = errors.nan_to_num(torch.inf, torch.inf)
    level = 2 * errors[0]
    above = errors >= level
    doubled = above.any(0)
    last = above.double().argmax(0).clamp_min(1)  # first budget with a doubled error
    eps = torch.tensor(sizes).to(errors)
    high = errors.gather(0, last.unsqueeze(0))[0]
    low = errors.gather(0, last.unsqueeze(0) - 1)[0]
    share = ((level - low) / (high - low).clamp_min(torch.finfo(errors.dtype).tiny)).clamp(0, 1)
    return torch.where(
        doubled, eps[last - 1] + share * (eps[last] - eps[last - 1]), eps[-1]
    ), doubled


def assess_filter(
    problem: Sequence,
    posterior: FilteredStates,
    made_by: PosteriorProvenance,
    attacker: Injection,
    threat: Threat,
    rng: Rng,
    figures: bool,
) -> Assessment:
    """Errors under attack at every budget and at 0, with checks of their credibility.

    The attacker simulates the filter with its own random numbers; the evaluation uses others.
    Scores are named "robust_rmse/eps=2.00", "robust_nmse/eps=2.00" and, under random signs,
    "random_rmse/eps=2.00"; "robust_rmse" is the error at the largest budget, "doubling_budget" the
    budget at which the error doubles, and "doubled" is 1 if it does.

    Raises:
        ConfigMismatchError: the true states or the scale of the noise are not known, or the filter
        has no gradient.
    """
    weights = state_error_weights(problem, attacker.error_measure(), attacker.name)
    unit = budget_unit(made_by, problem, attacker.noise_unit(), attacker.name)
    simulated = ReplayedFilterVictim(
        made_by, problem, rng, weights, unit, attacker.backpropagated_steps(), index=1
    )
    run = replace(simulated, index=0)
    references = attacker.references()

    shift: Tensor | None = None
    rows: list[SpoofingResult] = []
    budgets = sorted({0.0, *threat.sizes})
    with count_parts(len(budgets) + 1) as begin:
        for eps in budgets:
            begin(f"{attacker.name}, ε = {eps:g}")
            start = shift if rows and rows[-1].eps > 0 else None
            shift = attacker.shift(simulated, rng, eps, start)
            signs = references["random signs"].shift(simulated, rng, eps, None)
            errors = _errors(run, shift, attacker)
            random = _errors(run, signs, attacker)[2]
            rows.append(SpoofingResult(eps, shift, *errors, random=random))
        begin("checks of the attack")
        struck = attacker.struck(simulated, rng)
        checks = budget_checks(attacker, rows, struck, run, posterior)
        if attacked := [row for row in rows if row.eps > 0]:
            # attacks differ most where the error is closest to twice the clean one
            level = 2 * float(rows[0].error.mean())
            telling = min(attacked, key=lambda row: abs(float(row.error.mean()) - level))
            judges = {
                name: _errors(run, reference.shift(simulated, rng, telling.eps, None), attacker)[2]
                for name, reference in references.items()
            }
            checks += reference_checks(attacker, telling, judges, simulated, struck)
    budget, doubled = doubling_budget(budgets, torch.stack([row.error for row in rows]))
    passed = all(check.passed is not False for check in checks)
    scores = _scores(rows, attacker) | {
        "doubling_budget": budget,
        "doubled": doubled.to(budget),
        "attack_checks_passed": torch.full_like(budget, float(passed)),
    }
    if problem.replicates == 1:
        scores = {name: float(value) for name, value in scores.items()}

    warn_of_failures(checks)
    drawings = {}
    if figures:

        def draw_curve() -> Figures:
            from components.figures.attacked.error_curve import error_curve_figure

            errors, random = (
                torch.stack(each)
                for each in ([row.error for row in rows], [row.random for row in rows])
            )
            figure = error_curve_figure(budgets, errors, random, attacker.error_measure(), passed)
            return {"error_curve": figure}

        drawings["figure error_curve"] = draw_curve
    return Assessment(
        scores,
        checks,
        drawings=drawings,
        tabulations=tabulate_attack(_tabulate(rows, attacker), checks),
    )


def _errors(
    run: ReplayedFilterVictim, u: Tensor, attacker: Injection
) -> tuple[Tensor, Tensor, Tensor]:
    """RMSE over times and states, NMSE (mean over states), and the error that the attacker
    increases; [R] each."""
    mean = run.filter(u).mean
    check_same_shape("the estimated states", mean, run.states)
    rmse = (run.states - mean).square().mean((1, 2)).sqrt()
    nmse = filtering.mean_over_states(filtering.nmse(run.states, mean))
    return rmse, nmse, rmse if attacker.error_measure() == "rmse" else nmse


def _scores(rows: list[SpoofingResult], attacker: Injection) -> NamedScores:
    scores: NamedScores = {"rmse": rows[0].rmse}
    for row in rows:
        if row.eps > 0:
            suffix = size_suffix(row.eps)
            scores |= {f"robust_rmse/{suffix}": row.rmse, f"robust_nmse/{suffix}": row.nmse}
            scores[f"random_{attacker.error_measure()}/{suffix}"] = row.random
    return scores | {"robust_rmse": rows[-1].rmse, "robust_nmse": rows[-1].nmse}


def _tabulate(rows: list[SpoofingResult], attacker: Injection) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "eps": row.eps,
                "rmse": float(row.rmse.mean()),
                "nmse": float(row.nmse.mean()),
                "random": float(row.random.mean()),
                "ratio": float((row.error / rows[0].error).mean()),
                "max_shift": float(row.u.norm(dim=-1).max()),
                "knowledge": attacker.knowledge_used(),
            }
            for row in rows
        ]
    )
