"""Independent deep GPs."""

from __future__ import annotations

from components.contracts.streams import Rng
from components.models.deep_gp.build import (
    MultiTaskDGPModel,
    TaskSpecificProcesses,
    build_shared_and_specific,
)
from components.models.deep_gp.module import MultiTaskDGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "idgp")
class IDGP(MultiTaskDGPModel):
    """Independent deep GPs: one deep GP per task without shared parameters, evaluated as one batch.

        λ_n^t = (h_1^t(x_n) … h_J^t(x_n)),   f^t ~ GP(0, σ² κ(Σ_j ω_j^t (λ_j − λ'_j)²)),   y_n^t ~ p(y | f^t(λ_n^t))

    Source: Boustati (2021), section 3.5 (iDGP); Salimbeni and Deisenroth (2017).
    """

    def build(self, problem: Supervised, rng: Rng) -> MultiTaskDGP:
        specific = TaskSpecificProcesses(
            self.inner_dim, self.inner_lengthscale, self.inner_variance
        )
        return build_shared_and_specific(self, problem, rng, n_shared=0, specific=specific)
