"""Coregionalised multi-task deep GP."""

from __future__ import annotations

from pydantic import PositiveInt

from components.contracts.streams import Rng
from components.models.deep_gp.build import MultiTaskDGPModel, build_coregionalised
from components.models.deep_gp.module import MultiTaskDGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "cmdgp")
class CMDGP(MultiTaskDGPModel):
    """Coregionalised multi-task deep GP: linearly mixed latent processes under one coregionalised
    GP for all tasks.

        λ_k^t = Σ_q W_kq^t u_q(x),   f^t(λ^t) = Σ_r A_tr v_r(λ^t),   cov(f^t, f^s) = (A Aᵀ)_ts k(λ^t, λ^s)

    Any subset of a row's labels may be missing.

    Source: Boustati (2021), section 3.3.2 (cMDGP).
    """

    n_base: PositiveInt | None
    rank: PositiveInt | None

    def build(self, problem: Supervised, rng: Rng) -> MultiTaskDGP:
        rank = self.rank or problem.n_tasks
        return build_coregionalised(self, problem, rng, self.n_base or self.inner_dim, rank)
