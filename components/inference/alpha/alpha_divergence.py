"""The Gaussian that minimises an α-divergence from a density of one variable."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, NumericalError
from components.inference.chains import INDEPENDENT_CHAINS
from components.maths.divergences.alpha_divergence import (
    NearestGaussian,
    Quadrature,
    minimise,
    starts,
)
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.draws import Draws
from components.problems.density import Density
from components.registry import register

if TYPE_CHECKING:
    from components.figures.style import Figures

Alpha = float | Literal["-inf", "inf"]
# α at which mass, mean and sd are plotted
PATH = [
    -5.0,
    -4.0,
    -3.0,
    -2.0,
    -1.0,
    -0.5,
    -0.25,
    *(k / 8 for k in range(9)),
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
]


@dataclass(frozen=True, kw_only=True)
class NearestGaussians(Draws):
    """Draws of the normalised Gaussian for one α, and the Gaussians for other α with the target."""

    grid: Quadrature
    fit: NearestGaussian
    shown: list[NearestGaussian]
    path: list[NearestGaussian]

    def log_density(self, theta: Tensor) -> Tensor:
        """log N(θ | m, s²), [n, 1] -> [n]."""
        q = torch.distributions.Normal(self.fit.mean, self.fit.sd)
        value: Tensor = q.log_prob(theta[:, 0])
        return value

    def scores(self) -> dict[str, float]:
        """Mass, mean and standard deviation by α, and D_α of the fit."""
        out = {"divergence": self.fit.divergence, "mass": self.fit.mass}
        if math.isinf(self.fit.alpha):
            del out["divergence"]
        for alpha in self.shown:
            sizes = {"mass": alpha.mass, "q_mean": alpha.mean, "q_sd": alpha.sd}
            out |= {f"{name}/{alpha.alpha:g}": value for name, value in sizes.items()}
        return out

    def figures(self) -> Figures:
        from components.figures.variational.alpha_divergence import (
            nearest_gaussians,
            sizes_by_alpha,
        )

        x = self.grid.x.cpu()
        p = self.grid.log_p.exp().cpu()
        figures = {"nearest_gaussians": nearest_gaussians(x, p, self.shown)} if self.shown else {}
        return figures | {"sizes_by_alpha": sizes_by_alpha(self.path)}


@dataclass(kw_only=True)
class NearestGaussiansState:
    """The fits; empty before the first step."""

    model: LogJoint = not_checkpointed()
    problem: Density = not_checkpointed()
    base: Tensor = not_checkpointed()  # standard normal noise of the draws [2, N, 1]
    done: bool = False


@register("inference", "alpha_divergence")
class AlphaDivergence(Inference[LogJoint, Density, None, NearestGaussiansState]):
    """The unnormalised Gaussian q = Z N(m, s²) that minimises D_α[p ‖ q], α from −∞ to ∞.

        D_α[p ‖ q] = ∫ (α p + (1 − α) q − p^α q^{1−α}) dθ / (α (1 − α))
        Z = (∫ p^α N^{1−α} dθ)^{1/α},   (m, s) = argmin log Z/(α − 1)

    For ∫ p = ∫ q = 1 D_α is eq. (17); its limits α → 1 and α → 0 are KL(p ‖ q), matched
    moments, and KL(q ‖ p), variational inference with Z = exp(max ELBO) (eqs. 18, 19); α = ½
    is 4 Hel² (eq. 20).  The free mass affects only Z: the same N(m, s²) minimises eq. (17).  As α →
    ∞, q tends to the smallest q ≥ p; as α → −∞, to the largest q ≤ p.  For α ≠ 0 q and
    p^α q^{1−α} have the same first three moments.  Integrals are sums over ``points`` regular points of the
    dataset's box.  The first step computes all fits; the posterior is two chains of draws of N(m,
    s²) for ``alpha``.
    Figures: p and q for each α in ``shown`` (Figure 1), and Z, m, s for α from −5 to 5.

    Raises:
        ConfigMismatchError: the density has several variables.
        NumericalError: the density is not finite on its box, or zero.

    Source: Minka (2005), eq. (8), sections 3.1 and 3.2, Figures 1 and 2; Rodríguez Santana
    and Hernández-Lobato (2020), eqs. (17) to (20), Figure 1.
    """

    requires = Requirements(kinds={"density"}, batch_kind="whole", capabilities={LogJoint})
    mixes = False  # independent draws of a fit
    max_useful_steps = 1

    alpha: Alpha
    shown: list[Alpha]
    points: Annotated[int, Field(ge=101)]
    draws: PositiveInt

    def init(self, model: LogJoint, problem: Density, rng: Rng) -> NearestGaussiansState:
        if problem.dim != 1:
            raise ConfigMismatchError(
                f"inference={self.name}: integrates over one variable, but dataset={problem.name} "
                f"has {problem.dim}; use dataset=mixture_of_gaussians_1d, or inference=gaussian_vi"
            )
        like = problem.sample_prior(1, rng.init)
        base = standard_normal((INDEPENDENT_CHAINS, self.draws, 1), rng.init, like)
        return NearestGaussiansState(model=model, problem=problem, base=base)

    def grid(self, state: NearestGaussiansState) -> Quadrature:
        """log p on the box, in double precision."""
        low, high = state.problem.box[0]
        x = torch.linspace(low, high, self.points, dtype=torch.float64, device=state.base.device)
        with torch.no_grad():
            log_p = state.model.log_prior(x[:, None].to(state.base)).double()
        if not torch.isfinite(log_p).all():
            raise NumericalError(
                "the log density is not finite everywhere in its box",
                "narrow the box of the dataset",
            )
        return Quadrature(x, log_p, math.log((high - low) / (self.points - 1)))

    def step(
        self, state: NearestGaussiansState, batch: None, rng: Rng
    ) -> tuple[NearestGaussiansState, Info]:
        grid = self.grid(state)
        fit = minimise(grid, float(self.alpha), starts(grid))
        info = {"mass": fit.mass, "q_mean": fit.mean, "q_sd": fit.sd}
        return replace(state, done=True), info

    def posterior(self, state: NearestGaussiansState) -> NearestGaussians:
        grid = self.grid(state)
        begin = starts(grid)
        alpha, *shown = (float(a) for a in (self.alpha, *self.shown))
        fits = {a: minimise(grid, a, begin) for a in {alpha, *shown, *PATH}}
        fit = fits[alpha]
        return NearestGaussians(
            fit.mean + fit.sd * state.base,
            state.base.new_full((INDEPENDENT_CHAINS, 1), fit.mean),
            list(state.model.names),
            state.model,
            grid=grid,
            fit=fit,
            shown=[fits[a] for a in shown],
            path=[fits[a] for a in PATH],
        )
