"""Black-box variational inference for any log joint, in families from mean field to flows."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import CAPABILITIES, FactoredGuide, LogJoint, Pathwise
from components.contracts.plugins.protocols import protocols_of
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.chains import INDEPENDENT_CHAINS, SampleableProblem, init_chains
from components.inference.point.descent import frozen
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.flexible_guide import FlexibleGuide, FlowGuide, MixtureGuide
from components.inference.variational.global_gaussian import GAUSSIAN_CAPABILITIES, GlobalGaussian
from components.inference.variational.guide_fit import AscendedGuide, GlobalTrainingState
from components.maths.exponential.standard_draws import standard_normal, standard_uniform
from components.posteriors.variational import RefinedPosterior
from components.registry import register

Family = Literal["mean_field", "full_rank", "mixture", "flow"]


@dataclass(kw_only=True)
class BlackBoxTrainingState(GlobalTrainingState[GlobalGaussian | FlexibleGuide]):
    """q(θ) in training."""

    uniform: Tensor  # u [2, draws] next to ε


@dataclass(frozen=True, kw_only=True)
class FamilyPosterior(RefinedPosterior):
    """Posterior q(θ) from a family with a known density, and draws from it."""

    q: GlobalGaussian | FlexibleGuide

    @torch.no_grad()
    def log_density(self, theta: Tensor) -> Tensor:
        """log q(θ), [n, P] -> [n]."""
        return self.q.log_density(theta)


@register("inference", "bbvi")
class BBVI(AscendedGuide[BlackBoxTrainingState]):
    """Black-box variational inference: stochastic ascent of the bound with any gradient.

        L(φ) = E_q[log p(y, θ) − log q(θ)],   φ ← φ + lr · Adam(ĝ / N),   E[ĝ] = ∇_φ L

    Adam or SGD updates the parameters of q(θ).  ``family``: mean_field, Π_i
    N(m_i, s_i²), for which ``gradient: rao_blackwell`` omits the terms that do not contain
    a coordinate; full_rank, N(m, L Lᵀ); mixture, of ``parts`` factorised Gaussians; flow, a
    factorised Gaussian through ``layers`` affine couplings.  All have score-function and
    pathwise gradients.  The model needs only a log density, and its gradient only for
    pathwise gradients.  The posterior is two chains of ``draws`` draws of q, and minus the
    bound estimated from these draws (nelbo; for a density up to its unknown log normaliser).
    Info: elbo, the norm of ĝ / N.

    Raises:
        NumericalError: the log joint is not finite at the initial q, or q becomes non-finite.
        ConfigMismatchError: a flow with one coordinate.

    Source: Ranganath, Gerrish and Blei (2014), Algorithm 2; Bardenet (2021), section 5.3.
    """

    requires = Requirements(
        kinds={"density", "supervised", "unlabelled"},
    )

    family: Family
    parts: PositiveInt
    layers: PositiveInt
    width: PositiveInt

    def variational_capabilities(self) -> Set[type]:
        if self.family in ("mixture", "flow"):
            return protocols_of(FlexibleGuide, CAPABILITIES)
        return (
            GAUSSIAN_CAPABILITIES
            if self.family == "mean_field"
            else GAUSSIAN_CAPABILITIES - {FactoredGuide}
        )

    def _guide(
        self, target: RowwiseLogJoint, places: Tensor, rng: Rng
    ) -> GlobalGaussian | FlexibleGuide:
        """Initial q, around the first of ``places`` [J, P], or with one part around each."""
        mean = places[0]
        if self.family == "mixture":
            return MixtureGuide(target, places, self.initial_std)
        if self.family == "flow":
            if len(mean) == 1:
                raise ConfigMismatchError(
                    "inference.family=flow: couplings require at least two coordinates, and there "
                    "is one; use mixture"
                )
            return FlowGuide(target, mean, self.initial_std, self.layers, self.width, rng.init)
        return GlobalGaussian(target, mean, self.initial_std, self.family == "full_rank", "shared")

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> BlackBoxTrainingState:
        parts = self.parts if self.family == "mixture" else 1
        begin = torch.zeros_like(model.sample_prior(1, rng.init)) if parts == 1 else None
        start = init_chains(
            model,
            problem,
            self.requires.batch_kind,
            parts,
            rng,
            begin,
            Pathwise in self.gradient.requires.capabilities,
        ).start
        q = self._guide(RowwiseLogJoint.of(model, problem), start, rng)
        shape = (INDEPENDENT_CHAINS, self.draws, start.shape[1])
        base = standard_normal(shape, rng.init, start)
        uniform = standard_uniform(shape[:2], rng.init, start)
        begun = self.begin(q, base, model, problem, rng)
        return BlackBoxTrainingState(**vars(begun), uniform=uniform)

    @torch.no_grad()
    def posterior(self, state: BlackBoxTrainingState) -> FamilyPosterior:
        q = state.module
        model = state.model
        noise = state.base.flatten(0, 1)
        flat = (
            q.transform(noise)
            if isinstance(q, GlobalGaussian)
            else q.draw(noise, state.uniform.flatten())
        )
        draws = flat.unflatten(0, state.base.shape[:2])  # [2, N, P]
        rows = Rows(noise.new_zeros(1, 0), 1.0) if state.train is None else state.train
        bound = float(q.elbo(rows, noise))
        return FamilyPosterior(
            draws, draws[:, 0], list(model.names), model, objective=bound, bounds=True, q=frozen(q)
        )
