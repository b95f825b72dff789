"""Errors of moment estimates against a reference, in standard errors and deviations.

Standard errors include both estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.posteriors import HoldsDraws
from components.metrics.diagnostics import mcse_mean


def standard_error(draws: HoldsDraws, f: Tensor) -> Tensor:
    """Monte-Carlo standard error of the estimate of E[f] from f [C, N, Q], [Q]; NaN if no chain
    moved.

    Chains: ``mcse_mean``.  Weights: √(Σ w²(f − f̂)²), w self-normalised, the delta method.

    Source: Vehtari et al. (2021), section 4.3."""
    if draws.log_weights is None:
        return mcse_mean(f).to(f)
    f = f.flatten(0, 1)
    return (draws.weights.square() @ (f - draws.expectation(f)).square()).sqrt()


class ReferenceMoments(NamedTuple):
    """Moments of P' parameters, with standard errors of estimated ones."""

    mean: Tensor
    second_moment: Tensor
    mean_error: Tensor | None
    second_moment_error: Tensor | None
    draws: Tensor | None  # [C, N, P']
    fourth_moment: Tensor | None = None  # E[θ⁴] [P']; None if not known

    def variances(self) -> Tensor:
        """Var[θ] and Var[θ²] [2, P'].

        They are computed from the reference draws, or as E[θ²] − E[θ]² = s² and E[θ⁴] − E[θ²]²;
        without fourth moments 2s⁴ + 4 E[θ]² s², as for a Gaussian parameter."""
        if self.draws is not None:
            flat = self.draws.flatten(0, 1)
            return torch.stack([flat.var(0), flat.square().var(0)])
        variance = (self.second_moment - self.mean.square()).clamp_min(0)
        if self.fourth_moment is not None:
            of_square = (self.fourth_moment - self.second_moment.square()).clamp_min(0)
        else:
            of_square = 2 * variance.square() + 4 * self.mean.square() * variance
        return torch.stack([variance, of_square])


def moment_errors(draws: HoldsDraws, reference: ReferenceMoments) -> dict[str, Tensor]:
    """Error of each parameter: the larger of the errors of its first and second moments, [P']
    each.

        z_max     |Ê[f] − E[f]| / √(s² + s_ref²), s and s_ref the standard errors
                  of the draws and of the reference
        error_sd  |Ê[f] − E[f]| / sd[f]
        error_mean_sd: ``mean_sd_errors``

    sd[f] is computed from the reference draws; without these, from the sampler's own draws.
    """
    z, scaled, _ = signed_errors(draws, reference)
    return {
        "z_max": torch.maximum(*z.abs()),
        "error_sd": torch.maximum(*scaled.abs()),
        "error_mean_sd": mean_sd_errors(draws, reference.mean, reference.second_moment),
    }


def signed_errors(draws: HoldsDraws, reference: ReferenceMoments) -> Tensor:
    """Errors of ``moment_errors`` with their signs, in standard errors and in standard deviations.

    Returns:
        The two errors, and the skewness of the estimate, of E[θ] and E[θ²], [3, 2, P']; NaN where
        no chain moved.  The skewness is γ/√ESS with the skewness γ of f among the draws of chains,
        and Σ t³/(Σ t²)^{3/2} with the terms t = w (f − f̂) for weighted draws.
    """
    values = draws.values  # [C, N, P']
    rows = []
    for power, exact, reference_error in (
        (1, reference.mean, reference.mean_error),
        (2, reference.second_moment, reference.second_moment_error),
    ):
        check_shape("the draws", values, None, None, *exact.shape)
        f = values**power
        estimate = draws.expectation(f.flatten(0, 1))
        centred = f.flatten(0, 1) - estimate
        variance = draws.expectation(centred.square())
        error = standard_error(draws, f)
        terms = draws.weights.unsqueeze(1) * centred
        skew = (terms**3).sum(0) / terms.square().sum(0).square() * error
        if reference_error is not None:
            error = (error.square() + reference_error.square()).sqrt()
        sd = variance.sqrt()
        if reference.draws is not None:
            sd = (reference.draws**power).flatten(0, 1).std(0)
        distance = estimate - exact
        z = torch.where(error > 0, distance / error, torch.nan)
        rows.append(torch.stack([z, torch.where(sd > 0, distance / sd, torch.nan), skew]))
    return torch.stack(rows, 1)


def squared_biases(draws: HoldsDraws, reference: ReferenceMoments) -> Tensor:
    """b² = (Ê[f] − E[f])²/Var[f] of f = θ and f = θ² [2, P'], the variance of the reference.

    An average of n independent draws of the target has E[b²] = 1/n: .01 corresponds to 100 draws.
    NaN if the variance is not positive.

    Source: Hoffman & Sountsov (2022), section 4."""
    values = draws.values.flatten(0, 1)
    estimates = torch.stack([draws.expectation(values), draws.expectation(values.square())])
    exact = torch.stack([reference.mean, reference.second_moment])
    variances = reference.variances()
    return torch.where(variances > 0, (estimates - exact).square() / variances, torch.nan)


def mean_sd_errors(draws: HoldsDraws, mean: Tensor, second_moment: Tensor) -> Tensor:
    """Larger of the errors of each parameter's mean and standard deviation, in the reference's
    standard deviations [P'].

        max(|m̂ − m|, |ŝ − s|) / s,   m = E[θ], s² = E[θ²] − m², and m̂, ŝ by the draws

    The scale s belongs to the reference, so that draws that are too wide do not hide their error.
    NaN if s² is not positive."""
    values = draws.values.flatten(0, 1)
    m = draws.expectation(values)
    spread = draws.expectation((values - m).square()).sqrt()
    s = (second_moment - mean.square()).clamp_min(0).sqrt()
    error = torch.maximum((m - mean).abs(), (spread - s).abs())
    return torch.where(s > 0, error / s, torch.nan)
