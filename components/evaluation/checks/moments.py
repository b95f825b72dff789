"""Check that the draws of a run have the known moments of its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from components.contracts.checks import Bias, Check
from components.contracts.posteriors import HoldsDraws
from components.contracts.roles import Inference
from components.metrics import limits
from components.metrics.reference_moments import signed_errors
from components.problems.density import Density

FIT = Bias("its family, because draws are from a fit")


def moments_checks(
    problem: object,
    posterior: object,
    inference: Inference[Any, Any, Any, Any],
    mixing: Sequence[Check],
) -> list[Check]:
    """The largest |z| of all means and second moments of a density with known ones.

        z = (Ê[f] − E[f]) / √(s² + s_ref²),   f = θ_j and θ_j²,   |z| ≤ z_max

    s is the Monte-Carlo standard error by the effective sample size and s_ref the error of the
    reference.  For m moments of all replicates z_max = −Φ⁻¹(p/2m) with p = ``MOMENTS_P``, Holm's
    level of the largest |z|.  A skewness γ of the estimate, which makes s too small if it is below
    E[f], is removed by ``remove_skewness``; moments with draws too skewed for that are omitted.
    Chains that have not mixed and biased methods are not checked; their largest error is reported.

    Source: Vehtari et al. (2021), section 4.3; Holm (1979); Hall (1992).
    """
    if not isinstance(problem, Density) or not isinstance(posterior, HoldsDraws):
        return []
    if (moments := problem.moments) is None or not posterior.n_draws:
        return []
    replicates = map(posterior.select_replicate, range(posterior.replicates))
    errors = [signed_errors(draws, moments) for draws in replicates]
    z, scaled, skew = torch.stack(errors, 1)  # [R, 2, P'] each
    name = f"moments agree with the {'exact ones' if problem.mean_error is None else 'reference'}"
    bias = inference.draw_bias or (None if inference.mixes else FIT)
    if bias is not None:
        largest, moment = _largest(scaled, problem.names)
        error = f"largest error {largest:+.2g} sd ({moment})"
        return [Check(name, None, f"biased by {bias.reason}: {error}")]
    if unmixed := [check.name for check in mixing if not check.passed]:
        return [Check(name, None, f"the chains fail the check: {unmixed[0]}")]
    return [_compare(name, z, skew, problem.names)]


def remove_skewness(z: Tensor, skew: Tensor) -> Tensor:
    """z of a mean with skewness γ, transformed towards normality: z + γ z²/3 + γ² z³/27 + γ/6.

    Source: Hall (1992), section 2."""
    return z + skew * (z.square() / 3 + 1 / 6) + skew.square() * z**3 / 27


def _compare(name: str, z: Tensor, skew: Tensor, names: Sequence[str]) -> Check:
    """Check from the z [R, 2, P'] and the skewness [R, 2, P'] of all means."""
    usable = skew.abs().nan_to_num(0.0) <= limits.MOMENTS_SKEW
    if not usable.any():
        return Check(name, None, "the draws are too skewed for their effective sample size")
    z = remove_skewness(z, skew)
    most = limits.largest_z(z.numel())
    largest, moment = _largest(torch.where(usable, z, 0.0), names)
    detail = f"largest |z| {abs(largest):.3g} ({moment}), {most:.2g} allowed"
    if not usable.all():
        detail += (
            f"; {int((~usable).sum())} of {z.numel()} moments omitted because their draws are "
            f"skewed"
        )
    return Check(name, abs(largest) <= most, detail)


def _largest(errors: Tensor, names: Sequence[str]) -> tuple[float, str]:
    """The largest of the errors [R, 2, P'] and the name of its moment."""
    index = int(errors.abs().nan_to_num(0.0).argmax())
    replicate, rest = divmod(index, 2 * len(names))
    power, j = divmod(rest, len(names))
    moment = f"{('mean', 'second moment')[power]} of {names[j]}"
    suffix = f", replicate {replicate + 1}" if len(errors) > 1 else ""
    return float(errors.flatten()[index]), moment + suffix
