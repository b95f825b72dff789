"""The Kalman filter for R observation sequences at once."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch

from components.contracts.capabilities import LinearGaussian
from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.posteriors.filtered import Filtered
from components.problems.sequence import Observation, Sequence
from components.registry import register
from components.trouble import NumericalTrouble

Z90 = 1.6448536269514722  # the standard normal's 95 % quantile


@register("inference", "kalman")
class Kalman(Inference):
    """Kalman filter: the exact filtering distributions of a linear Gaussian state-space model.

    m⁻ = A m, P⁻ = A P Aᵀ + Q;  S = H P⁻ Hᵀ + Σ, K = P⁻ Hᵀ S⁻¹;  m = m⁻ + K(y − H m⁻), P = (I − KH) P⁻ (I − KH)ᵀ + K Σ Kᵀ.
    Means are [R, dx]; covariances do not depend on the observations, so all replicates share one [dx, dx].  Quantiles are
    those of the Gaussian; the log normaliser is the log evidence Σ_t log N(y_t | H m⁻, S).

    Raises NumericalTrouble when S cannot be factorised.

    Source: Kalman (1960); Särkkä (2013), theorem 4.2."""

    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    sees: ClassVar[Sees] = "observation"
    needs: ClassVar[frozenset[str]] = frozenset({"linear_gaussian"})

    def init(self, model: LinearGaussian, problem: Sequence, rng: Rng) -> dict[str, Any]:
        m0 = model.m0
        return {
            "model": model,
            "m": m0.expand(problem.replicates, -1).clone(),  # [R, dx]
            "P": model.P0.clone(),  # [dx, dx]
            "filtered": Filtered.allocate(problem.observations, len(m0)),
        }

    def step(self, state: dict[str, Any], batch: Observation, rng: Rng) -> tuple[dict[str, Any], Info]:
        model, filtered = state["model"], state["filtered"]
        m = state["m"] @ model.A.T  # [R, dx]
        P = model.A @ state["P"] @ model.A.T + model.Q
        predicted = m @ model.H.T  # [R, dy]
        S = model.H @ P @ model.H.T + model.Sigma
        L, failed = torch.linalg.cholesky_ex(S)
        if failed:
            raise NumericalTrouble(
                f"Cholesky of the innovation covariance failed at t = {batch.t}", "set dtype=float64"
            )
        K = torch.cholesky_solve(model.H @ P, L).T  # [dx, dy]
        innovation = batch.y - predicted  # [R, dy]
        m = m + innovation @ K.T
        keep = torch.eye(len(P), device=P.device, dtype=P.dtype) - K @ model.H
        P = keep @ P @ keep.T + K @ model.Sigma @ K.T  # Joseph's form stays positive definite
        whitened = torch.linalg.solve_triangular(L, innovation.T, upper=False)  # [dy, R]
        log_det = 2 * L.diagonal().log().sum()
        log_evidence = -0.5 * (whitened.square().sum(0) + log_det + len(S) * math.log(2 * math.pi))  # [R]

        variance, now = P.diagonal(), batch.t - 1
        filtered.mean[:, now] = m
        filtered.variance[:, now] = variance
        filtered.lower[:, now] = m - Z90 * variance.sqrt()
        filtered.upper[:, now] = m + Z90 * variance.sqrt()
        filtered.predicted[:, now] = predicted
        filtered.log_normaliser += log_evidence
        filtered.t = batch.t
        return state | {"m": m, "P": P}, {"log_normaliser": log_evidence, "innovation": innovation.norm(dim=1)}

    def posterior(self, state: dict[str, Any]) -> Filtered:
        return state["filtered"]
