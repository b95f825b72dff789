"""A network as it is, without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from components.contracts.capabilities import Network
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.point.descent import frozen
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class FixedState:
    """The network, which no step moves."""

    network: Network = rebuilt()


@register("inference", "fixed")
class Fixed(Inference[Network, Supervised, Batch, FixedState]):
    """A network as it is, without training: what was trained elsewhere is evaluated and attacked.

    p(y*|x*) = p(y*|x*, θ₀), θ₀ where the model begins: the weights of a file (model=state_dict,
    model=module), or random ones. A step does nothing, and one is made unless more are asked for.

    Source: Madry et al. (2018), section 2 (the network that is attacked)."""

    requires = Requirements(
        kinds=frozenset({"supervised"}), batch_kind="whole", capabilities=frozenset({"network"})
    )
    max_useful_steps: ClassVar[int | None] = 1
    provides: ClassVar[frozenset[str]] = frozenset({"predicts"})

    def init(self, model: Network, problem: Supervised, rng: Rng) -> FixedState:
        return FixedState(network=model)

    def step(self, state: FixedState, batch: Batch, rng: Rng) -> tuple[FixedState, Info]:
        return state, {}

    def posterior(self, state: FixedState) -> PointEstimate:
        return PointEstimate(frozen(state.network))
