"""Gaussian filters: N(m, P) for each of R replicates, and their common measurement update.

Before y is observed: N(m⁻, P⁻), the expected observation ŷ and deviations D_x, D_y
weighted by W with Cov(x, h(x)) = D_x W D_yᵀ: D_x = I, D_y = H, W = P⁻ if h is linear or
has been linearised, otherwise sigma points and their weights.  Then

    S = D_y W D_yᵀ + Σ,  K = D_x W D_yᵀ S⁻¹,  m = m⁻ + K(y − ŷ)
    P = (D_x − K D_y) W (D_x − K D_y)ᵀ + K Σ Kᵀ

The last equation is Joseph's form: positive definite for any rounding of K.

Source: Särkkä (2013), theorem 4.2 and algorithms 5.4, 5.14; Bucy and Joseph (1968) for
the covariance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities import AdditiveGaussian, LinearGaussian
from components.contracts.costs.counts import count
from components.contracts.posteriors import FilteredStates, SmoothedStates
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.sequences import Observation
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.maths.cholesky import LOG_2PI, half_log_det
from components.series.models.affine_module import AffineModule
from components.series.posteriors.filtered import Filtering
from components.series.sequence import Sequence

Z90 = 1.6448536269514722  # the standard normal's 95 % quantile
MAX_ROUNDING_ERRORS = 8  # largest change of a converged covariance in a step, in rounding errors


M = TypeVar("M", bound=AdditiveGaussian | LinearGaussian)


@dataclass(frozen=True)
class Gain:
    """Effect of an observation on N(m⁻, P⁻), independent of its value.

    Tensors have a leading dimension R if replicates differ.
    """

    start: Tensor  # P of the previous time
    prior_P: Tensor  # P⁻ [dx, dx]
    K: Tensor  # [dx, dy]
    whiten: Tensor  # L⁻¹, S = L Lᵀ [dy, dy]
    P: Tensor  # given y; ``start`` itself if the step leaves it unchanged

    @cached_property
    def log_scale(self) -> Tensor:
        """log N(0 | 0, S) [] or [R]."""
        return half_log_det(self.whiten) - 0.5 * self.whiten.shape[-1] * LOG_2PI

    @cached_property
    def margins(self) -> tuple[Tensor, Tensor]:
        """Variances of x and half the width of the 90 % interval [dx] or [R, dx]."""
        return margins(self.P)


def margins(P: Tensor) -> tuple[Tensor, Tensor]:
    """Variances [..., dx] of a covariance and half the width of the 90 % interval."""
    variance = torch.linalg.diagonal(P)
    return variance, Z90 * variance.sqrt()


@dataclass(kw_only=True)
class Gaussians(Generic[M]):
    """N(m, P), the current filtering distribution of each replicate, and the results so far."""

    model: M = not_checkpointed()
    m: Tensor  # [R, dx]
    P: Tensor  # [dx, dx], shared by all replicates, or [R, dx, dx]
    # of the last step: reused once P has converged, recomputed from P after resuming
    gain: Gain | None = not_checkpointed()
    filtered: Filtering


GaussianStep = tuple[Gaussians[M], Info]


class GaussianFilter(Inference[M, Sequence, Observation, Gaussians[M]], Generic[M]):
    """Filter that approximates the state at each time by a Gaussian."""

    requires = Requirements(kinds={"sequence"}, batch_kind="observation")
    provides = {FilteredStates}

    def init(self, model: M, problem: Sequence, rng: Rng) -> Gaussians[M]:
        return start(model, problem, apart=True, evidence=isinstance(model, LinearGaussian))

    def posterior(self, state: Gaussians[M]) -> SmoothedStates:
        return state.filtered.current_posterior()


def start(model: M, problem: Sequence, apart: bool, evidence: bool = True) -> Gaussians[M]:
    """The prior N(m_0, P_0); ``apart`` is True if covariances differ between replicates.

    Raises:
        NumericalError: Σ has no Cholesky factor.
    """
    if torch.linalg.cholesky_ex(model.Sigma).info.any():
        raise NumericalError(
            "the observation noise Σ is not positive definite", "raise the noise of the model"
        )
    return Gaussians(
        model=model,
        m=model.m0.expand(problem.replicates, -1).clone(),
        P=model.P0.expand(problem.replicates, -1, -1).clone() if apart else model.P0.clone(),
        gain=None,
        filtered=Filtering.for_times(
            problem.observations.shape[1],
            problem.observations.new_zeros(problem.replicates),
            evidence,
        ),
    )


@dataclass(frozen=True)
class Deviations:
    """D_x, D_y and W of the update; leading dimension R if replicates differ."""

    x: Tensor | None  # [dx, J]; None means the identity
    y: Tensor  # [dy, J]
    W: Tensor  # [J, J]


def gain(start: Tensor, prior_P: Tensor, deviations: Deviations, Sigma: Tensor, t: int) -> Gain:
    """The update's K, S and P, before the value of y.

    Raises:
        NumericalError: S has no Cholesky factor.
    """
    W = deviations.W
    half = W @ deviations.y.mT  # [J, dy]
    cross = half if deviations.x is None else deviations.x @ half
    L, failed = torch.linalg.cholesky_ex(_plus(Sigma, deviations.y, half))
    if failed if failed.dim() == 0 else failed.any():
        raise NumericalError(
            f"Cholesky of the innovation covariance failed at t = {t}", "set dtype=float64"
        )
    identity = torch.eye(L.shape[-1], device=L.device, dtype=L.dtype)
    whiten = torch.linalg.solve_triangular(L, identity, upper=False)
    K = cross @ whiten.mT @ whiten
    all_x = (
        torch.eye(K.shape[-2], device=L.device, dtype=L.dtype)
        if deviations.x is None
        else deviations.x
    )
    contraction = _plus(all_x, K, -deviations.y)
    return Gain(start, prior_P, K, whiten, _plus(K @ Sigma @ K.mT, contraction @ W, contraction.mT))


def _plus(base: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """base + a b, in one call if all are matrices: calls dominate the time of a small filter."""
    return torch.addmm(base, a, b) if base.dim() == a.dim() == b.dim() == 2 else base + a @ b


def predicted_covariance(A: Tensor, P: Tensor, Q: Tensor) -> Tensor:
    """P⁻ = A P Aᵀ + Q."""
    return _plus(Q, A @ P, A.mT)


def freeze_converged_gain(found: Gain) -> Gain:
    """The same gain, with the old P if the step changes it by no more than rounding.

    From then on the gain is constant and need not be recomputed."""
    P = found.P
    previous = found.start
    if P.requires_grad or P.shape != previous.shape:
        return found
    if (
        P.dim() == 2
        and abs((now := float(P.trace())) - float(previous.trace()))
        > MAX_ROUNDING_ERRORS * torch.finfo(P.dtype).eps * now
    ):
        return found  # cheap test: most steps are far from convergence, as the trace shows
    return replace(found, P=previous) if bool(rounding(P, previous).all()) else found


def rounding(P: Tensor, before: Tensor) -> Tensor:
    """Mask of the covariance entries that changed by at most a few rounding errors.

    Each entry is compared in its own units.
    """
    sd = torch.linalg.diagonal(P).sqrt()
    return (P - before).abs() <= MAX_ROUNDING_ERRORS * torch.finfo(P.dtype).eps * sd.unsqueeze(
        -1
    ) * sd.unsqueeze(-2)


def propagate_mean(model: LinearGaussian, x: Tensor) -> Tensor:
    """A x + b of states [..., dx]; b is 0 unless the model is an ``AffineModule``."""
    count(forwards=len(x))
    product = x @ model.A.T
    return product + model.shift if isinstance(model, AffineModule) else product


def apply_gain(K: Tensor, innovation: Tensor) -> Tensor:
    """K v of each replicate; K [dx, dy] or [R, dx, dy], v [R, dy] -> [R, dx]."""
    return innovation @ K.mT if K.dim() == 2 else (K @ innovation.unsqueeze(2)).squeeze(2)


def innovation(batch: Observation, predicted: Tensor) -> Tensor:
    """y − ŷ [R, dy], 0 for missing observations."""
    if batch.missing is None:
        return batch.y - predicted
    return (batch.y - predicted).masked_fill(batch.missing.unsqueeze(1), 0)


def finish_filter_step(
    state: Gaussians[M],
    batch: Observation,
    prior_m: Tensor,
    predicted: Tensor,
    found: Gain,
    v: Tensor | None = None,
    extra: Tensor | None = None,
    weight: Tensor | None = None,
) -> GaussianStep[M]:
    """Update m = m⁻ + K v for innovations v (y − ŷ if None), 0 for missing observations, and record
    the results.

    ``extra`` is added to log N(v | 0, S) for the log normaliser [R]; ``weight`` is the weight of
    the observation [R], by default 1."""
    v = innovation(batch, predicted) if v is None else v
    shares_gain = found.K.dim() == 2
    m = torch.addmm(prior_m, v, found.K.mT) if shares_gain else prior_m + apply_gain(found.K, v)
    P = found.P
    variance, z = found.margins
    squares = apply_gain(found.whiten, v).square().sum(1)
    log_normaliser = torch.add(found.log_scale, squares, alpha=-0.5)  # log N(v | 0, S)  # [R]
    if extra is not None:
        log_normaliser = log_normaliser + extra
    if batch.missing is not None:
        gone = batch.missing.view(-1, 1, 1) if P.dim() == 3 else batch.missing[0]
        P = torch.where(gone, found.prior_P, P)
        variance, z = margins(P)
        log_normaliser = log_normaliser.masked_fill(batch.missing, 0)
    filtered = state.filtered
    summaries = {"mean": m, "variance": variance.expand_as(m), "lower": m - z, "upper": m + z}
    filtered.add(batch.t, **summaries, predicted=predicted, weight=weight)
    filtered.log_normaliser = filtered.log_normaliser + log_normaliser
    info = {"log_normaliser": log_normaliser, "innovation": torch.linalg.vector_norm(v, dim=1)}
    return replace(state, m=m, P=P, gain=found), info
