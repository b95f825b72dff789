"""Dirichlet process mixtures by scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities.partitions import DirichletProcess
from components.contracts.costs.counts import count
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import AtLeastTwo, Inference, Info
from components.contracts.states import not_checkpointed, placed
from components.contracts.streams import Rng, seed_from
from components.maths.cholesky import LOG_2PI, half_log_det
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass(frozen=True)
class ExpectedMixture:
    """T Gaussians at the expected weights, means and precisions of q."""

    weights: Tensor  # E π [T]
    means: Tensor  # [T, D]
    roots: Tensor  # R_t upper triangular with R_t R_tᵀ = E Λ_t [T, D, D]

    def _log_components(self, batch: Rows) -> Tensor:
        """log E π_t N(x_b | m_t, (E Λ_t)⁻¹) [B, T]."""
        x = batch.x.flatten(1)
        pulled = torch.einsum("btd,tde->bte", x[:, None] - self.means, self.roots)
        log_det = half_log_det(self.roots)  # ½ log |E Λ|
        constant = self.weights.log() + log_det - 0.5 * x.shape[1] * LOG_2PI
        return constant - 0.5 * pulled.square().sum(2)

    def log_predictive(self, batch: Rows) -> Tensor:
        """log Σ_t E π_t N(x_b | m_t, (E Λ_t)⁻¹) [B]: plug-in parameters, not integrated out."""
        return self._log_components(batch).logsumexp(1)

    def clusters(self, batch: Rows) -> Tensor:
        return self._log_components(batch).softmax(1)


@dataclass(frozen=True, kw_only=True)
class DpSklearnState:
    """State that holds the library's fitted mixture."""

    model: DirichletProcess = not_checkpointed()
    found: dict[str, Tensor] | None = placed()


@register("inference", "dp_sklearn")
class DpSklearn(Inference[DirichletProcess, Unlabelled, Rows, DpSklearnState]):
    """Mean-field Dirichlet process mixture by scikit-learn, a reference for our own methods.

        q(z) Π_t q(v_t) q(μ_t, Λ_t),   log p(x) ≈ log Σ_t E π_t N(x | m_t, (E Λ_t)⁻¹)

    It uses scikit-learn's ``BayesianGaussianMixture``.  ``prior`` model uses the base measure of
    the model; library uses the weaker defaults of the library.  The best of ``starts`` k-means
    starts is used; all cycles run in the first step.  Held-out densities are evaluated at expected
    parameters, because the library has no predictive density (its ``score`` takes expected
    logarithms, which do not give a density).  It runs on the CPU.

    Source: Pedregosa et al. (2011); Blei & Jordan (2006), section 3.
    """

    requires = Requirements(
        kinds={"unlabelled"},
        batch_kind="whole",
        capabilities={DirichletProcess},
    )
    max_useful_steps = 1
    prior: Literal["model", "library"]
    truncation: AtLeastTwo
    starts: PositiveInt
    cycles: PositiveInt

    def init(self, model: DirichletProcess, problem: Unlabelled, rng: Rng) -> DpSklearnState:
        return DpSklearnState(model=model)

    def step(self, state: DpSklearnState, batch: Rows, rng: Rng) -> tuple[DpSklearnState, Info]:
        if state.found is not None:
            return state, {}
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import BayesianGaussianMixture  # slow to import

        measure = state.model.prior
        keys = dict[str, Any]()
        if self.prior == "model":
            keys = {
                "mean_prior": measure.m.cpu().numpy(),
                "mean_precision_prior": float(measure.beta),
                "degrees_of_freedom_prior": float(measure.nu),
                "covariance_prior": measure.V.cpu().numpy(),
            }
        mixture = BayesianGaussianMixture(
            n_components=min(self.truncation, batch.n_rows),
            n_init=self.starts,
            max_iter=self.cycles,
            weight_concentration_prior=state.model.concentration,
            random_state=seed_from(rng.init),
            **keys,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported in Info
            mixture.fit(batch.x.flatten(1).cpu().numpy())
        count(forwards=mixture.n_iter_ * batch.n_rows)
        parts = {
            "weights": mixture.weights_,
            "means": mixture.means_,
            "roots": mixture.precisions_cholesky_,
        }
        parameters = {name: torch.from_numpy(value).to(batch.x) for name, value in parts.items()}
        return replace(state, found=parameters), {
            "cycles": mixture.n_iter_,
            "converged": float(mixture.converged_),
        }

    def posterior(self, state: DpSklearnState) -> ExpectedMixture:
        assert state.found is not None
        return ExpectedMixture(**state.found)
