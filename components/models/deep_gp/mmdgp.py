"""Multiprocess multi-task deep GP."""

from __future__ import annotations

from pydantic import NonNegativeInt, PositiveFloat

from components.contracts.streams import Rng
from components.models.deep_gp.build import (
    MultiTaskDGPModel,
    TaskSpecificProcesses,
    build_shared_and_specific,
)
from components.models.deep_gp.module import MultiTaskDGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mmdgp")
class MMDGP(MultiTaskDGPModel):
    """Multiprocess multi-task deep GP: shared and task-specific latent processes under one ARD GP
    per task.

        λ_n^t = (g_1(x_n) … g_I(x_n), h_1^t(x_n) … h_J^t(x_n)),   f^t ~ GP(0, σ² κ(Σ_i ω_i^t (λ_i − λ'_i)²))

    Without task-specific processes it is sMDGP, without shared ones iDGP.

    Source: Boustati (2021), sections 3.3.1 and 3.3.2 (mMDGP), eqs. (3.3) to (3.15).
    """

    specific_dim: NonNegativeInt
    specific_lengthscale: PositiveFloat | None
    specific_variance: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> MultiTaskDGP:
        specific = TaskSpecificProcesses(
            self.specific_dim, self.specific_lengthscale, self.specific_variance
        )
        return build_shared_and_specific(
            self, problem, rng, self.inner_dim, specific if self.specific_dim else None
        )
