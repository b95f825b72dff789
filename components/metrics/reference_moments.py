"""Errors of moment estimates against a reference, in standard errors and deviations.

The standard errors are of both estimates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.posteriors import HoldsDraws
from components.metrics.diagnostics import mcse_mean


def standard_error(draws: HoldsDraws, f: Tensor) -> Tensor:
    """Monte-Carlo standard error of the estimate of E[f] from f [C, N, Q], [Q]; NaN where no chain
    moved.

    Chains: ``mcse_mean``.  Weights: √(Σ w²(f − f̂)²), w self-normalised, the delta method.

    Source: Vehtari et al. (2021), section 4.3."""
    if draws.log_weights is None:
        return mcse_mean(f).to(f)
    f = f.flatten(0, 1)
    return (draws.weights.square() @ (f - draws.expectation(f)).square()).sqrt()


def moment_errors(
    draws: HoldsDraws,
    mean: Tensor,
    second_moment: Tensor,
    mean_error: Tensor | None = None,
    second_moment_error: Tensor | None = None,
    reference: Tensor | None = None,
) -> dict[str, Tensor]:
    """Error of each parameter, the larger one of its first and second moments, [P'] each.

        z_max     |Ê[f] − E[f]| / √(s² + s_ref²), s and s_ref the standard errors
                  of the draws and of the reference
        error_sd  |Ê[f] − E[f]| / sd[f]
        error_mean_sd: ``mean_sd_errors``

    If ``mean_error`` and ``second_moment_error`` are None, the reference is exact.
    ``reference`` [C, N, P'] are draws from which sd[f] is computed; None uses the sampler's
    own draws.
    """
    z, scaled = signed_errors(
        draws, mean, second_moment, mean_error, second_moment_error, reference
    )
    return {
        "z_max": torch.maximum(*z.abs()),
        "error_sd": torch.maximum(*scaled.abs()),
        "error_mean_sd": mean_sd_errors(draws, mean, second_moment),
    }


def signed_errors(
    draws: HoldsDraws,
    mean: Tensor,
    second_moment: Tensor,
    mean_error: Tensor | None = None,
    second_moment_error: Tensor | None = None,
    reference: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Errors of ``moment_errors`` with their signs, in standard errors and in standard deviations.

    Returns:
        The errors of E[θ] and E[θ²], [2, P'] each; NaN where no chain moved.
    """
    values = draws.values  # [C, N, P']
    check_shape("the draws", values, None, None, *mean.shape)
    z = []
    scaled = []
    for power, exact, reference_error in (
        (1, mean, mean_error),
        (2, second_moment, second_moment_error),
    ):
        f = values**power
        estimate = draws.expectation(f.flatten(0, 1))
        error = standard_error(draws, f)
        if reference_error is not None:
            error = (error.square() + reference_error.square()).sqrt()
        if reference is None:
            sd = (draws.expectation((f.flatten(0, 1) - estimate).square())).sqrt()
        else:
            sd = (reference**power).flatten(0, 1).std(0)
        distance = estimate - exact
        z.append(torch.where(error > 0, distance / error, torch.nan))
        scaled.append(torch.where(sd > 0, distance / sd, torch.nan))
    return torch.stack(z), torch.stack(scaled)


def skewness(draws: HoldsDraws) -> Tensor:
    """Skewness E[(f − E f)³] / sd[f]³ of f = θ and f = θ² among the draws, [2, P']."""
    values = draws.values.flatten(0, 1)
    rows = []
    for power in (1, 2):
        f = values**power
        f = f - draws.expectation(f)
        rows.append(draws.expectation(f**3) / draws.expectation(f.square()) ** 1.5)
    return torch.stack(rows)


def mean_sd_errors(draws: HoldsDraws, mean: Tensor, second_moment: Tensor) -> Tensor:
    """Error of each parameter's mean or standard deviation, the larger one, in the reference's
    standard deviations [P'].

        max(|m̂ − m|, |ŝ − s|) / s,   m = E[θ], s² = E[θ²] − m², and m̂, ŝ by the draws

    All of the scale is the reference's, so that draws that are too wide do not hide their error.
    NaN where s² is no positive number."""
    values = draws.values.flatten(0, 1)
    m = draws.expectation(values)
    spread = draws.expectation((values - m).square()).sqrt()
    s = (second_moment - mean.square()).clamp_min(0).sqrt()
    error = torch.maximum((m - mean).abs(), (spread - s).abs())
    return torch.where(s > 0, error / s, torch.nan)
