"""Coordinate ascent variational inference, one factor at a time."""

from __future__ import annotations

from typing import Any

from pydantic import PositiveInt

from components.contracts.capabilities import CoordinateAscent, LogJoint, StructuredAscent
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.inference.chains import INDEPENDENT_CHAINS
from components.inference.variational.coordinate import (
    CoordinateInference,
    CoordinateState,
    best_start,
    path,
    sample_with_stored_seed,
)
from components.inference.variational.factor_posterior import FactorDraws
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("inference", "cavi")
class CAVI(CoordinateInference[CoordinateAscent[Any]]):
    """Coordinate ascent variational inference: each mean-field factor in turn set to its optimum.

        q_i(x_i) ∝ exp E_{q_−i} log p(x, y),   L(q) = E_q[log p(x, y) − log q(x)] ≤ log p(y)
        x = (θ, z)

    A step is one cycle over all factors for ``starts`` starts in parallel; the start with
    the best L is the posterior.  L cannot decrease, and a decrease beyond rounding ends the run.
    ``joint`` names the parameters θ_I that stay dependent in one factor, q_I(θ_I) Π_{i ∉ I}
    q_i(θ_i) (structured mean field); without it the model's own factors are used.  Label
    predictions and moments are computed from two chains of ``draws`` draws; densities of rows
    without labels come from q itself if known.  Scores: nelbo, −L of all training rows in nats.
    Info: elbo, its gain in this cycle, and L of the worst start.

    Raises:
        NumericalError: L decreases or is not finite.
        ConfigMismatchError: the model has no factor for the names in ``joint``.

    Source: Bardenet (2021), eqs. (5.3) to (5.5) and, for ``joint``, the end of 5.2; Bishop (2006), eq. (10.9).
    """

    requires = Requirements(
        capabilities={CoordinateAscent},
    )
    mixes = False  # independent draws of a fit

    draws: PositiveInt
    joint: list[str]

    def asked_by_keys(self) -> dict[type, str]:
        return {StructuredAscent: "joint"} if self.joint else {}

    def init(
        self, model: CoordinateAscent[Any], problem: Supervised | Unlabelled, rng: Rng
    ) -> CoordinateState:
        if self.joint:
            assert isinstance(model, StructuredAscent)
            return self.init_starts(model, model.structured_field(self.joint), problem, rng)
        return self.init_starts(model, model.mean_field(), problem, rng)

    def posterior(self, state: CoordinateState) -> FactorDraws:
        factors, objective = best_start(state)
        theta = sample_with_stored_seed(state, factors, INDEPENDENT_CHAINS * self.draws).unflatten(
            0, (INDEPENDENT_CHAINS, -1)
        )  # [2, N, P]
        model = state.model
        assert isinstance(model, LogJoint)
        return FactorDraws(
            theta,
            theta[:, 0],
            list(model.names),
            model,
            ascent=state.ascent,
            factors=factors,
            objective=objective,
            climb=path(state, "ELBO"),
        )
