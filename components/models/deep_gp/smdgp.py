"""Shared multi-task deep GP."""

from __future__ import annotations

from components.contracts.streams import Rng
from components.models.deep_gp.build import MultiTaskDGPModel, build_shared_and_specific
from components.models.deep_gp.module import MultiTaskDGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "smdgp")
class SMDGP(MultiTaskDGPModel):
    """Shared multi-task deep GP: latent processes shared by all tasks under one ARD GP per task.

        λ_n = (g_1(x_n) … g_I(x_n)),   f^t ~ GP(0, σ² κ(Σ_i ω_i^t (λ_i − λ'_i)²)),   y_n^t ~ p(y | f^t(λ_n))

    The weights ω^t softly segment the shared latent space between tasks.

    Source: Boustati (2021), section 3.3.2 (sMDGP), eqs. (3.14) and (3.15).
    """

    def build(self, problem: Supervised, rng: Rng) -> MultiTaskDGP:
        return build_shared_and_specific(self, problem, rng, n_shared=self.inner_dim, specific=None)
