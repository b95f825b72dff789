"""emcee's ensemble of walkers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from components.contracts.capabilities import LogJoint
from components.contracts.streams import Rng
from components.inference.chains import Chains, SampleableProblem, init_chains
from components.inference.peers.peer import Peer, PeerTarget, Transition
from components.registry import register


@register("inference", "emcee")
class Emcee(Peer):
    """Affine-invariant ensemble sampler from emcee; needs no gradient.

    There are max(C, 2 P + 2) walkers; a step updates all of them, each half with the positions of
    the other half, so that the chains are not independent.

    Source: Foreman-Mackey et al. (2013).
    """

    package = "emcee"
    moves: Literal["stretch", "differential_evolution"]

    def start_chains(
        self, model: LogJoint, problem: SampleableProblem, rng: Rng, gradient: bool = False
    ) -> Chains:
        walkers = max(self.chains, 2 * model.dim + 2)
        return init_chains(model, problem, self.requires.batch_kind, walkers, rng, gradient=False)

    def sample(self, target: PeerTarget, seed: int) -> Iterator[Transition]:
        from emcee import EnsembleSampler, State
        from emcee.moves import DEMove, DESnookerMove, StretchMove

        # mixture of moves that the authors recommend in high dimensions
        mixture = [(DEMove(), 0.8), (DESnookerMove(), 0.2)]
        moves = StretchMove() if self.moves == "stretch" else mixture
        sampler = EnsembleSampler(
            len(target.start), target.dim, target.value, moves=moves, vectorize=True
        )
        start = State(target.start, random_state=np.random.RandomState(seed).get_state())
        for state in sampler.sample(start, iterations=2**31, store=False):
            yield state.coords, {}
