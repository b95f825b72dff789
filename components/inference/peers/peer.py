"""Base of the samplers of other packages."""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint, WarmStart
from components.contracts.costs.counts import Costs, counting, pause, resume
from components.contracts.requirements import WHOLE_DATA
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, seed_from
from components.errors import require_package
from components.inference.chains import (
    Chains,
    ModelBatch,
    SampleableProblem,
    Sampler,
    advance,
    first_batch,
)
from components.inference.log_joint import log_joint, value_and_gradient

Rows = NDArray[Any]  # float64
Transition = tuple[Rows, Mapping[str, Any]]  # θ [C, P], statistics [C] under the names of ``Draws``


class PeerTarget:
    """A model for NumPy: log π and its gradient at θ [K, P], and starts of chains.

    The model counts evaluations from all threads, as for any method."""

    def __init__(self, model: LogJoint, batch: ModelBatch, start: Tensor) -> None:
        self.start: Rows = _to_rows(start)  # [C, P]
        self.dim = start.shape[1]
        self._model = model
        self._batch = batch
        self._like = start
        self._lock = threading.Lock()
        self.costs: Costs | None = None  # costs to which evaluations are added

    def value(self, theta: Rows) -> Rows:
        """log π [K]."""
        with self._lock, counting(self.costs), torch.no_grad():
            return _to_rows(log_joint(self._model, self._to_tensor(theta), self._batch))

    def value_and_gradient(self, theta: Rows) -> tuple[Rows, Rows]:
        """log π [K] and its gradient [K, P]."""
        with self._lock, counting(self.costs):
            results = value_and_gradient(self._model, self._to_tensor(theta), self._batch)
        return _to_rows(results[0]), _to_rows(results[1])

    def draw_start(self, seed: int) -> Rows:
        """Another start [P]."""
        model = self._model
        begin = model.sample_start if isinstance(model, WarmStart) else model.sample_prior
        generator = torch.Generator(self._like.device).manual_seed(seed % 2**63)
        return _to_rows(begin(1, generator)[0])

    def _to_tensor(self, theta: Rows) -> Tensor:
        return torch.from_numpy(np.array(theta)).to(self._like)


def _to_rows(value: Tensor) -> Rows:
    return value.detach().to("cpu", torch.float64).numpy()


class Transitions:
    """The transitions of a peer; a resumed run repeats the earlier ones without counting them."""

    def __init__(self, target: PeerTarget, transitions: Iterator[Transition]) -> None:
        self._target = target
        self._transitions = transitions
        self._made = 0
        weakref.finalize(self, transitions.close)  # type: ignore[attr-defined]

    def make(self, t: int) -> Transition:
        """Transition t = 0, 1, …"""
        while self._made < t:
            with counting(None):
                self._next()
        return self._next()

    def _next(self) -> Transition:
        self._target.costs = pause()
        resume(self._target.costs)
        self._made += 1
        return next(self._transitions)


@dataclass(kw_only=True)
class PeerChains(Chains):
    """Chains of a peer, which holds its own state."""

    transitions: Transitions = not_checkpointed()


class Peer(Sampler[PeerChains]):
    """Sampler from another package, C chains with the package's warm-up.

    A step is one transition of each chain, so that its cost is known and a budget can end the run;
    states of the warm-up are discarded.

    Raises ConfigMismatchError if its package is not installed."""

    requires = WHOLE_DATA
    folds_replicates = frozenset()
    package: ClassVar[str]

    chains: PositiveInt
    warmup: NonNegativeInt
    thinning: PositiveInt

    @abstractmethod
    def sample(self, target: PeerTarget, seed: int) -> Iterator[Transition]:
        """Infinite iterator of transitions, starting with the warm-up."""

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> PeerChains:
        require_package(self.package, f"inference={self.name}", "peers")
        chains = self.start_chains(model, problem, rng)
        batch = first_batch(problem, self.requires.batch_kind, rng)
        target = PeerTarget(model, batch, chains.theta)
        transitions = Transitions(target, self.sample(target, seed_from(rng.init)))
        return PeerChains(**vars(chains), transitions=transitions)

    def step(self, state: PeerChains, batch: ModelBatch, rng: Rng) -> tuple[PeerChains, Info]:
        position, numbers = state.transitions.make(state.t)
        theta = torch.from_numpy(np.array(position)).to(state.theta)
        stats = {name: torch.from_numpy(np.array(value)) for name, value in numbers.items()}
        state = advance(state, theta, self.warmup, self.thinning, stats)
        means = {name: value.double().mean() for name, value in stats.items()}
        return state, means | {"draws": len(state.kept)}
