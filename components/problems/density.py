"""Density problems: a target log-density over flat, unconstrained parameters θ.

Moments may be known.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.attackers import Attacker
from components.contracts.checks import NamedScores, check_shape
from components.contracts.posteriors import Analyses, HoldsDraws
from components.contracts.problems import BatchKind, Kind, KnowsTruth
from components.contracts.progress import report_each
from components.contracts.streams import Rng
from components.errors import IncompleteResultWarning
from components.figures.attempts import ANALYSIS, attempt, draw_each
from components.figures.samples.posterior import POSTERIOR_FIGURES
from components.maths.spacing import evenly_spaced, spaced_rows
from components.metrics import diagnostics
from components.metrics.draws_entropy import NEIGHBOUR, entropy
from components.metrics.reference_moments import (
    ReferenceMoments,
    moment_errors,
    squared_biases,
)
from components.metrics.stein_discrepancy import ksd_squared
from components.metrics.undefined import stack_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from components.figures.style import Figures

KSD_DRAWS = 500
KL_DRAWS = 4000
# scores in ``moment_errors`` that are reported as maximum over coordinates
LARGEST = ("z_max", "error_sd", "error_mean_sd")
# (problem, draws) -> {name: Figure}
DensityFigure = Callable[["Density", HoldsDraws], dict[str, "Figure"]]


@dataclass
class Density(KnowsTruth):
    """A target density π with its known properties; its batches are empty because there are no
    data."""

    kind: Kind = field(default="density", init=False)
    name: str
    names: list[str]  # of the P' parameters
    # θ [K, P] -> log π(θ) [K], with any log-Jacobian, normalised or not
    log_density: Callable[[Tensor], Tensor]
    # n, generator -> [n, P], initial states of samplers
    sample_prior: Callable[[int, torch.Generator], Tensor]
    mean: Tensor | None  # of the parameters [P']; None if not known
    # of the parameters, for each coordinate [P']; None if not known
    second_moment: Tensor | None
    box: list[tuple[float, float]]  # range of each parameter in figures
    # θ [K, P] -> parameters [K, P']; None if they are θ itself
    constrain: Callable[[Tensor], Tensor] | None = None
    free: int | None = None  # P, if it differs from P'
    # figures in addition to the figures of every sample
    figures: list[DensityFigure] = field(default_factory=list)
    # standard error of ``mean`` if it is an estimate [P']; None if exact
    mean_error: Tensor | None = None
    second_moment_error: Tensor | None = None
    fourth_moment: Tensor | None = None  # E[θ⁴] of the parameters [P']; None if not known
    scale: Tensor | None = None  # standard deviation of each coordinate of θ [P]; None if not known
    log_normaliser: float | None = None  # log ∫ exp(log_density); None if not known
    # [C, N, P'] reference draws of the parameters, (nearly) independent
    reference_draws: Tensor | None = None
    # R replicates of this density, folded into the chains by methods that support it
    replicates: int = 1
    attacker: Attacker | None = None

    @property
    def dim(self) -> int:
        """P, the number of unconstrained coordinates."""
        return len(self.names) if self.free is None else self.free

    @property
    def moments(self) -> ReferenceMoments | None:
        """The known moments; None if they are not known."""
        if self.mean is None or self.second_moment is None:
            return None
        errors = (self.mean_error, self.second_moment_error)
        return ReferenceMoments(
            self.mean, self.second_moment, *errors, self.reference_draws, self.fourth_moment
        )

    @property
    def coordinate_scale(self) -> Tensor | None:
        """Standard deviation of each coordinate of θ [P] under the target; None if not known."""
        if self.scale is None and self.constrain is None and self.moments is not None:
            return self.moments.variances()[0].sqrt()
        return self.scale

    def without_truth(self) -> Density:
        """The target as passed to a method, without the ground truth for scores."""
        return replace(
            self,
            mean=None,
            second_moment=None,
            mean_error=None,
            second_moment_error=None,
            fourth_moment=None,
            scale=None,
            log_normaliser=None,
            reference_draws=None,
        )

    def length(self, batch_kind: BatchKind) -> int | None:
        return None

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, None]]:
        """Steps start+1 … stop with empty batches."""
        for step in range(start + 1, stop + 1):
            yield step, None

    def score(self, posterior: HoldsDraws, rng: Rng) -> NamedScores:
        """Errors of the first two moments, if known, and convergence diagnostics.

        Scores are [R] for several replicates; there are none without draws.

        ``error_mean`` = ‖Ê[θ] − E[θ]‖₂ with all chains and draws pooled, the error of the estimate
        that a user would report.  ``error_mean_of_a_chain`` is the error of a single chain's
        estimate, averaged over the chains.  (Gallego's Table 2.3 specifies neither the norm nor
        whether chains or their errors are averaged.)  ``error_second_moment`` is the pooled error
        of E[θ²]; ``b2_mean`` and ``b2_max`` are mean and maximum over the coordinates of the larger
        squared bias of their two moments; ``mean``, ``sd`` and ``second_moment`` are the estimates
        themselves, averaged over the coordinates; ``LARGEST`` are maxima of ``moment_errors``; the
        diagnostics are from ``diagnostics.convergence``, and ``ksd`` is the kernelised Stein
        discrepancy from π of at most 500 draws, evenly spaced, because its cost is quadratic.  Its
        kernel uses distances in θ divided by the target's standard deviations if known, because in
        raw coordinates the widest one dominates.

        If the normaliser of π is known, ``kl`` estimates KL(q ‖ π) of the density q of at most
        4,000 draws, evenly spaced.  The draws are treated as independent except for repetitions
        (rejected proposals), which ``entropy`` accounts for.  ``kl`` is omitted with a warning if
        there are too few draws.
        """
        if posterior.n_draws == 0:
            return {}
        if posterior.replicates == 1:
            return {
                **self._scores(posterior),
                **(posterior.scores() if isinstance(posterior, Analyses) else {}),
            }
        each = [
            self._scores(posterior.select_replicate(r))
            for r in report_each(
                range(posterior.replicates), lambda r: f"scores of replicate {r + 1}"
            )
        ]
        return stack_scores(each)

    def _scores(self, posterior: HoldsDraws) -> dict[str, float]:
        """The scores of one replicate."""
        out, errors = self._errors(posterior)
        sd = (posterior.second_moment - posterior.mean.square()).clamp_min(0).sqrt()
        by_name = {"mean": posterior.mean, "sd": sd, "second_moment": posterior.second_moment}
        out |= {name: float(value.mean()) for name, value in by_name.items()}
        by_name |= errors
        out |= {name: float(errors[name].max()) for name in LARGEST if name in errors}
        worst, each = diagnostics.convergence(posterior)
        out |= worst
        # θ may be unknown for draws of another program
        is_known = not bool(posterior.flat[:1].isnan().any())
        if is_known:
            out["ksd"] = self._ksd(posterior)
        if is_known and (kl := self._kl(posterior)) is not None:
            out["kl"] = kl
        by_name |= each
        return out | {
            f"{k}/{name}": float(v)
            for k, vs in by_name.items()
            for name, v in zip(self.names, vs, strict=True)
        }

    def _kl(self, posterior: HoldsDraws) -> float | None:
        """KL(q ‖ π) in nats; None without a normaliser, for weighted draws, and (with a warning)
        for too few distinct draws."""
        if (
            self.log_normaliser is None
            or posterior.log_weights is not None
            or len(posterior.flat) <= NEIGHBOUR
        ):
            return None
        theta = evenly_spaced(posterior.flat, KL_DRAWS).detach()
        distinct = len(theta.unique(dim=0))
        if distinct <= NEIGHBOUR:
            message = (
                f"kl: {distinct} distinct draws are too few, {NEIGHBOUR + 1} required; raise steps"
            )
            warnings.warn(message, IncompleteResultWarning, stacklevel=4)
            return None
        return self.log_normaliser - float(self.log_density(theta).mean() + entropy(theta))

    def _errors(self, posterior: HoldsDraws) -> tuple[dict[str, float], dict[str, Tensor]]:
        """Errors of the known moments: over all parameters, and for each [P']."""
        if (moments := self.moments) is None:
            return {}, {}
        check_shape("the draws", posterior.mean, *moments.mean.shape)
        first = posterior.mean - moments.mean
        second = posterior.second_moment - moments.second_moment
        out = {"error_mean": float(first.norm()), "error_second_moment": float(second.norm())}
        if posterior.log_weights is None:
            out["error_mean_of_a_chain"] = float(
                (posterior.values.mean(1) - moments.mean).norm(dim=1).mean()
            )
        each = {"error_mean": first.abs(), "error_second_moment": second.abs()}
        if posterior.log_weights is not None or posterior.n_draws >= diagnostics.FEWEST_DRAWS:
            each |= moment_errors(posterior, moments)
            each["b2"] = squared_biases(posterior, moments).amax(0)
            out |= {"b2_mean": float(each["b2"].mean()), "b2_max": float(each["b2"].max())}
        return out, each

    def _ksd(self, posterior: HoldsDraws) -> float:
        """KSD of evenly spaced draws θ; NaN if the log density cannot be differentiated."""
        rows = spaced_rows(len(posterior.flat), KSD_DRAWS, device=posterior.flat.device)
        theta = posterior.flat[rows].detach().requires_grad_()
        with torch.enable_grad():
            value = self.log_density(theta).sum()
        if not value.requires_grad:
            return math.nan
        (score,) = torch.autograd.grad(value, theta)
        weights = (
            None
            if posterior.log_weights is None
            else posterior.log_weights.flatten()[rows].softmax(0)
        )
        scale = self.coordinate_scale
        if scale is None or not bool((scale > 0).all()):
            scale = torch.ones_like(theta[0])
        # for z = θ / s, ∇_z log π = s ∇_θ log π
        ksd2 = ksd_squared(theta.detach() / scale, score * scale, weights)
        return float(ksd2.clamp_min(0).sqrt())

    def draw(self, posterior: HoldsDraws, rng: Rng) -> Figures:
        """Figures of the first replicate, and the posterior's own figures for a single
        replicate."""
        first = posterior.select_replicate(0)
        figures = draw_each(dict.fromkeys([*self.figures, *POSTERIOR_FIGURES]), self, first)
        if posterior.replicates == 1 and isinstance(posterior, Analyses):
            figures |= attempt(ANALYSIS, posterior.figures)
        return figures

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        return {"target": self.name, "dimensions": f"{self.dim}"}
