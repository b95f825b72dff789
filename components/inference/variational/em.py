"""Expectation maximisation: coordinate ascent with point masses as factors of the parameters."""

from __future__ import annotations

from typing import Any

from components.contracts.capabilities import LogJoint, PointMasses
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.inference.variational.coordinate import (
    CoordinateInference,
    CoordinateState,
    best_start,
    path,
    sample_with_stored_seed,
)
from components.inference.variational.factor_posterior import PointMassPosterior
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("inference", "em")
class EM(CoordinateInference[PointMasses[Any]]):
    """Expectation maximisation (EM): coordinate ascent with a point q(θ) = δ(θ − θ̂).

        q(z) = p(z | θ̂, y),   θ̂ ← argmax_θ E_q(z)[log p(y, z | θ)] + log p(θ)

    The latent variables of rows are treated as in mean field.  A step is one cycle of
    ``starts`` starts in parallel; the start with the best objective is the result.  The objective,
    log p(y | θ̂) + log p(θ̂) or (if not ``penalised``) log p(y | θ̂), cannot decrease, and a
    decrease beyond rounding ends the run.  Scores: objective in nats, mean/… (location of the
    point).  Info: elbo (the objective), its gain in this cycle, and the objective of the worst
    start.

    Raises:
        NumericalError: the objective decreases, or a cluster collapses.

    Source: Dempster, Laird and Rubin (1977); Bardenet (2021), section 5.2.3; Bishop (2006),
    section 9.4.
    """

    requires = Requirements(
        capabilities={PointMasses},
    )

    penalised: bool

    def init(
        self, model: PointMasses[Any], problem: Supervised | Unlabelled, rng: Rng
    ) -> CoordinateState:
        return self.init_starts(model, model.point_masses(self.penalised), problem, rng)

    def posterior(self, state: CoordinateState) -> PointMassPosterior:
        factors, objective = best_start(state)
        model = state.model
        assert isinstance(model, LogJoint)
        title = "log posterior" if self.penalised else "log likelihood"
        theta = sample_with_stored_seed(state, factors, 1)
        return PointMassPosterior(
            model, theta, state.ascent, factors, objective, path(state, title)
        )
