"""Three targets in the plane, benchmarks of semi-implicit posteriors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart
from components.figures.samples.marginal_2d import marginal_2d
from components.figures.samples.trace import trace
from components.maths.exponential.standard_draws import standard_normal
from components.problems.density import Density
from components.registry import register

MOMENTS = {  # E[θ], E[θ²], E[θ⁴]
    "banana": ([0.0, 2.0], [1.0, 7.0], [3.0, 304.76]),
    "multimodal": ([0.0, 0.0], [5.0, 1.0], [43.0, 3.0]),
    "x_shaped": ([0.0, 0.0], [2.0, 2.0], [12.0, 12.0]),
}
# mean, variance of both coordinates and their covariance, of each component
PARTS = {
    "banana": [((0, 0), 1.0, 0.9)],
    "multimodal": [((-2, 0), 1.0, 0.0), ((2, 0), 1.0, 0.0)],
    "x_shaped": [((0, 0), 2.0, 1.8), ((0, 0), 2.0, -1.8)],
}
BOXES = {
    "banana": [(-4.0, 4.0), (-3.0, 11.0)],
    "multimodal": [(-6.0, 6.0), (-4.0, 4.0)],
    "x_shaped": [(-5.0, 5.0)] * 2,
}


@register("dataset", "planar_toy")
class PlanarToy(NormalStart):
    """A normalised banana, two-mode or cross-shaped density in the plane, with exact moments.

        banana      θ = (v_1, v_1² + v_2 + 1),  v ~ N(0, [[1, 0.9], [0.9, 1]])
        multimodal  ½ N((−2, 0), I) + ½ N((2, 0), I)
        x_shaped    ½ N(0, [[2, 1.8], [1.8, 2]]) + ½ N(0, [[2, −1.8], [−1.8, 2]])

    The banana's map has Jacobian 1; E[θ] = (0, 2), E[θ_j²] = (1, 7).  θ [K, 2].  Samplers start at
    N(0, start_sd² I).

    Source: Yin and Zhou (2018), section 4 and Titsias and Ruiz (2019), section 4: their
    two-dimensional targets."""

    shape: Literal["banana", "multimodal", "x_shaped"]

    def identity(self, data_dir: Path, offline: bool) -> str:
        return f"{self.name}-{self.shape}".replace("_", "-")

    def load(self, rng: Rng, setting: Setting) -> Density:
        parts = PARTS[self.shape]
        bent = float(self.shape == "banana")
        covariances = [[[v, c], [c, v]] for _, v, c in parts]
        roots = torch.linalg.cholesky(setting.tensor(covariances))
        means = setting.tensor([mean for mean, _, _ in parts])  # [M, 2]
        whiten = torch.linalg.inv(roots)  # [M, 2, 2]
        log_weights = -roots.diagonal(dim1=1, dim2=2).log().sum(1) - math.log(
            2 * math.pi * len(parts)
        )

        def log_density(theta: Tensor) -> Tensor:
            first, second = theta.unbind(1)
            v = torch.stack([first, second - bent * (first.square() + 1)], 1)  # [K, 2]
            white = torch.einsum("mij,kmj->kmi", whiten, v[:, None] - means)
            return (log_weights - 0.5 * white.square().sum(-1)).logsumexp(1)  # [K]

        def exact(n: int, generator: torch.Generator) -> Tensor:
            component = torch.randint(
                len(parts), (n,), generator=generator, device=generator.device
            )
            z = standard_normal((n, 2), generator, means)
            v = means[component] + (roots[component] @ z[:, :, None])[:, :, 0]
            return torch.stack([v[:, 0], v[:, 1] + bent * (v[:, 0].square() + 1)], 1)

        first, second, fourth = MOMENTS[self.shape]
        return self.make_density(
            setting,
            ["x1", "x2"],
            log_density,
            mean=setting.tensor(first),
            second_moment=setting.tensor(second),
            fourth_moment=setting.tensor(fourth),
            log_normaliser=0.0,
            box=BOXES[self.shape],
            figures=[marginal_2d(log_density, exact), trace],
        )
