"""Summaries of hidden states, with checks of the particles that they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from components.contracts.checks import Check
from components.contracts.roles import FinishedRun, SeriesProblem
from components.metrics import limits
from components.posteriors.draws import Draws

EQUAL = 1e-6  # relative rounding error of the effective sample size of equal weights


@dataclass(frozen=True)
class StateSummaries:
    """Summaries of the distributions of x_1 … x_T for R replicates."""

    mean: Tensor  # [R, T, dx]
    variance: Tensor  # [R, T, dx]
    lower: Tensor  # 5 % quantile [R, T, dx]
    upper: Tensor  # 95 % quantile [R, T, dx]
    # effective sample size before resampling [R, T]; None if there are no particles
    ess: Tensor | None = field(default=None, kw_only=True)

    def checks(self, run: FinishedRun) -> list[Check]:
        """Checks of the effective sample size at every time; empty without particles.

        A robust loss saturates if all observations are far off.  Particles then have equal weights
        for any observation, and the effective sample size never changes.
        """
        if self.ess is None:
            return []
        # the number of particles, a whole number, if some time has equal weights
        most = self.ess.amax(1, keepdim=True)
        # [R, T]
        is_used = (self.ess < most * (1 - limits.MIN_USED_SHARE)) | ~torch.isclose(
            most, most.round(), rtol=EQUAL, atol=0
        )
        return [_check_weights(self.ess), *observation_checks(is_used, run)]


@dataclass(frozen=True)
class DrawsParameters(StateSummaries):
    """States with draws of the parameters of their model."""

    parameters: Draws  # [R·C, N, P]

    def checks(self, run: FinishedRun) -> list[Check]:
        """Checks of the parameter draws, then those of the particles."""
        return [*self.parameters.checks(run), *super().checks(run)]

    def artefacts(self, folder: Path) -> list[Path]:
        """Write the parameter draws of the first replicate to a run's folder; return the paths."""
        return self.parameters.artefacts(folder)


def _check_weights(ess: Tensor) -> Check:
    """Check that fails if the effective sample size [R, T] is small at some time."""
    least = ess.double().amin(0).cpu()  # [T], of the worst replicate
    is_degenerate = least < limits.LEAST_ESS
    detail = f"smallest ESS {float(least.min()):.3g}"
    if is_degenerate.any():
        detail += (
            f", below {limits.LEAST_ESS:g} at {int(is_degenerate.sum())} of "
            f"{len(least)} recorded times, first t = {int(is_degenerate.double().argmax()) + 1}"
        )
    else:
        detail += f" at t = {int(least.argmin()) + 1}, of {len(least)} recorded times"
    return Check("no particle carries half of the weight", not is_degenerate.any(), detail)


def observation_checks(is_used: Tensor, run: FinishedRun) -> list[Check]:
    """Check that a filter that can ignore observations follows some of them.

    Args:
        follows: True where an observation changes the weights [R, T] bool.
        run: the finished replicate.
    """
    if not isinstance(run.problem, SeriesProblem) or is_used.shape[1] < 2:
        return []
    is_missing = run.problem.series.y[:, : is_used.shape[1]].isnan().any(-1)
    is_observed = ~is_missing.to(is_used.device)
    number = (is_used & is_observed).sum(1)
    n_observed = is_observed.sum(1)  # [R]
    worst = int((number / n_observed.clamp_min(1)).argmin())
    passed = bool(((number > 0) | (n_observed == 0)).all())
    detail = f"{int(number[worst])} of {int(n_observed[worst])} observations change the weights"
    detail += f", the fewest of {len(n_observed)} replicates" if len(n_observed) > 1 else ""
    if not passed:
        detail += "; they are too far off for this loss: check the prior and the scale of the data"
    return [Check("the filter follows its observations", passed, detail)]
