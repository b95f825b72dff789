"""The Kalman filter for R observation sequences at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info
from components.contracts.sequences import Observation
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.posteriors.filtered import Filtered, Filtering
from components.problems.sequence import Sequence
from components.registry import register
from components.trouble import NumericalTrouble

Z90 = 1.6448536269514722  # the standard normal's 95 % quantile


@dataclass(kw_only=True)
class Gaussians:
    """N(m, P), the filtering distribution of each replicate now, and what has been filtered."""

    model: LinearGaussian = rebuilt()
    m: Tensor  # [R, dx]
    P: Tensor  # [dx, dx], that of all replicates; [R, dx, dx] where they miss different observations
    filtered: Filtering


@register("inference", "kalman")
class Kalman(Inference[LinearGaussian, Sequence, Observation, Gaussians]):
    """Kalman filter: the exact filtering distributions of a linear Gaussian state-space model.

    m⁻ = A m, P⁻ = A P Aᵀ + Q;  S = H P⁻ Hᵀ + Σ, K = P⁻ Hᵀ S⁻¹;  m = m⁻ + K(y − H m⁻), P = (I − KH) P⁻ (I − KH)ᵀ + K Σ Kᵀ.
    Means are [R, dx].  Covariances do not depend on the values observed: replicates that miss the same observations, or
    none, share one [dx, dx].  Where an observation is missing, m = m⁻ and P = P⁻.  Quantiles are those of the Gaussian; the
    log normaliser is the log evidence Σ_t log N(y_t | H m⁻, S).

    Raises NumericalTrouble when S cannot be factorised.

    Source: Kalman (1960); Särkkä (2013), theorem 4.2."""

    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    sees: ClassVar[Sees] = "observation"
    needs: ClassVar[frozenset[str]] = frozenset({"linear_gaussian"})
    gives: ClassVar[frozenset[str]] = frozenset({"filtered_states"})

    def init(self, model: LinearGaussian, problem: Sequence, rng: Rng) -> Gaussians:
        missing = problem.missing
        apart = bool((missing != missing[:1]).any())
        return Gaussians(
            model=model,
            m=model.m0.expand(problem.replicates, -1).clone(),
            P=model.P0.expand(problem.replicates, -1, -1).clone() if apart else model.P0.clone(),
            filtered=Filtering(log_normaliser=problem.observations.new_zeros(problem.replicates)),
        )

    def step(self, state: Gaussians, batch: Observation, rng: Rng) -> tuple[Gaussians, Info]:
        model, filtered = state.model, state.filtered
        prior_m = state.m @ model.A.T  # [R, dx]
        prior_P = model.A @ state.P @ model.A.T + model.Q
        predicted = prior_m @ model.H.T  # [R, dy]
        S = model.H @ prior_P @ model.H.T + model.Sigma
        L, failed = torch.linalg.cholesky_ex(S)
        if failed if failed.dim() == 0 else failed.any():
            raise NumericalTrouble(
                f"Cholesky of the innovation covariance failed at t = {batch.t}", "set dtype=float64"
            )
        K = torch.cholesky_solve(model.H @ prior_P, L).mT  # [dx, dy]
        innovation = batch.y - predicted  # [R, dy]
        m = prior_m + (innovation @ K.mT if K.dim() == 2 else (K @ innovation.unsqueeze(2)).squeeze(2))
        keep = torch.eye(m.shape[1], device=m.device, dtype=m.dtype) - K @ model.H
        P = keep @ prior_P @ keep.mT + K @ model.Sigma @ K.mT  # Joseph's form stays positive definite
        if L.dim() == 2:
            squares = torch.linalg.solve_triangular(L, innovation.T, upper=False).square().sum(0)  # [R]
        else:
            squares = torch.linalg.solve_triangular(L, innovation.unsqueeze(2), upper=False).square().sum((1, 2))
        log_det = 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_evidence = -0.5 * (squares + log_det + S.shape[-1] * math.log(2 * math.pi))  # [R]
        if batch.missing is not None:
            m, log_evidence = (
                torch.where(batch.missing.unsqueeze(1), prior_m, m),
                log_evidence.masked_fill(batch.missing, 0),
            )
            P = torch.where(batch.missing.view(-1, 1, 1) if P.dim() == 3 else batch.missing[0], prior_P, P)
            innovation = innovation.masked_fill(batch.missing.unsqueeze(1), 0)

        variance = P.diagonal(dim1=-2, dim2=-1)  # [dx], or [R, dx]
        z = Z90 * variance.sqrt()
        filtered.add(batch.t, mean=m, variance=variance.expand_as(m), lower=m - z, upper=m + z, predicted=predicted)
        filtered.log_normaliser += log_evidence
        state.m, state.P = m, P
        return state, {"log_normaliser": log_evidence, "innovation": innovation.norm(dim=1)}

    def posterior(self, state: Gaussians) -> Filtered:
        return state.filtered.so_far()
