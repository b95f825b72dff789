"""A network or a model of rows, without training."""

from __future__ import annotations

from dataclasses import dataclass

from components.contracts.capabilities import LogRatio, Network
from components.contracts.posteriors import BoundsLikelihood, Predicts
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.point.descent import frozen
from components.posteriors.latent import LatentPosterior
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class FixedState:
    """The network, which steps do not change."""

    network: Network | LogRatio[RowBatch] = not_checkpointed()


@register("inference", "fixed")
class Fixed(Inference[Network | LogRatio[RowBatch], Supervised | Unlabelled, RowBatch, FixedState]):
    """Evaluation without training, for networks trained elsewhere, which are evaluated and
    attacked, and for models of rows in closed form (model=ppca), which are scored.

    p(y*|x*) = p(y*|x*, θ₀), θ₀ the model's initial weights: from a file (model=state_dict,
    model=module), or random ones.  A step does nothing; the default is one step.

    Source: Madry et al. (2018), section 2 (the attacked network)."""

    requires = Requirements(
        kinds={"supervised", "unlabelled"},
        batch_kind="whole",
        capabilities=frozenset(),
        capabilities_by_kind={
            "supervised": {Network},
            "unlabelled": {LogRatio},
        },
    )
    max_useful_steps = 1
    provides_by_kind = {
        "supervised": {Predicts},
        "unlabelled": {BoundsLikelihood},
    }

    def init(
        self,
        model: Network | LogRatio[RowBatch],
        problem: Supervised | Unlabelled,
        rng: Rng,
    ) -> FixedState:
        return FixedState(network=model)

    def step(self, state: FixedState, batch: RowBatch, rng: Rng) -> tuple[FixedState, Info]:
        return state, {}

    def posterior(self, state: FixedState) -> PointEstimate | LatentPosterior:
        if isinstance(state.network, Network):
            return PointEstimate(frozen(state.network))
        return LatentPosterior(state.network)
