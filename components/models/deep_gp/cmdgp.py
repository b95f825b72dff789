"""Coregionalised multi-task deep GP."""

from __future__ import annotations

from typing import ClassVar

from pydantic import PositiveInt

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.deep_gp.build import build_coregionalised
from components.models.deep_gp.module import MultiTaskDGP
from components.models.deep_gp.settings import DeepGPSettings
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "cmdgp")
class CMDGP(Model[Supervised, MultiTaskDGP], DeepGPSettings):
    """Coregionalised multi-task deep GP: linearly mixed latent processes under one coregionalised
    GP of all tasks.

        λ_k^t = Σ_q W_kq^t u_q(x),   f^t(λ^t) = Σ_r A_tr v_r(λ^t),   cov(f^t, f^s) = (A Aᵀ)_ts k(λ^t, λ^s)

    Any subset of a row's labels may be missing.

    Source: Boustati (2021), section 3.3.2 (cMDGP).
    """

    requires = Requirements(kinds=frozenset({"supervised"}))
    offers: ClassVar[frozenset[str]] = frozenset(
        {
            "elbo",
            "given_function",
            "variational_layers",
            "noise_parameters",
            "ard_weights",
            "inducing_inputs",
        }
    )
    n_base: PositiveInt | None
    rank: PositiveInt | None

    def build(self, problem: Supervised, rng: Rng) -> MultiTaskDGP:
        rank = self.rank or problem.n_tasks
        return build_coregionalised(self, problem, rng, self.n_base or self.inner_dim, rank)
