"""nutpie's no-U-turn sampler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

import numpy as np

from components.contracts.roles import BetweenZeroAndOne
from components.errors import NumericalError
from components.inference.peers.peer import Peer, PeerTarget, Rows, Transition
from components.registry import register

TIMEOUT_SECONDS = 600.0  # timeout of a transition of all chains
MOST_NUMBERS = 2 * 10**7  # of a chain, for which nutpie allocates memory


@register("inference", "nutpie")
class Nutpie(Peer):
    """No-U-turn sampler from nutpie, C chains in threads, with masses from draws and gradients.

    Each chain learns its own step size and masses, and waits for the others after each draw.
    Raises NumericalError if a chain fails.

    Source: Hoffman & Gelman (2014), Algorithm 6; the package, on the masses.
    """

    package = "nutpie"
    target_acceptance: BetweenZeroAndOne
    mass: Literal["diagonal", "low_rank"]

    def sample(self, target: PeerTarget, seed: int) -> Iterator[Transition]:
        import nutpie
        from nutpie.compiled_pyfunc import from_pyfunc

        barrier = threading.Barrier(self.chains + 1)
        seeds: dict[int, int] = {}  # thread -> seed of its chain
        draws: dict[int, Rows] = {}  # seed -> θ [P]

        def start(seed: int) -> Rows:
            seeds[threading.get_ident()] = seed
            return target.draw_start(seed)

        def evaluate(theta: Rows) -> tuple[float, Rows]:
            if barrier.broken:
                return np.nan, theta
            value, gradient = target.value_and_gradient(theta[None])
            return float(value[0]), gradient[0]

        def keep(theta: Rows) -> dict[str, Rows]:
            draws[seeds[threading.get_ident()]] = theta
            with suppress(threading.BrokenBarrierError):
                barrier.wait()  # all chains have a draw
                barrier.wait()  # all chains continue
            return {"theta": theta}

        variable = ([np.dtype(float)], [(target.dim,)], ["theta"])
        model = from_pyfunc(
            target.dim, lambda: evaluate, lambda *_: keep, *variable, make_initial_point_fn=start
        )
        background = nutpie.sample(
            model,
            tune=max(self.warmup, 1),  # nutpie panics at 0
            draws=MOST_NUMBERS // target.dim,
            chains=self.chains,
            cores=self.chains,
            seed=seed,
            low_rank_modified_mass_matrix=self.mass == "low_rank",
            target_accept=self.target_acceptance,
            progress_bar=False,
            blocking=False,
        )
        try:
            while True:
                barrier.wait(TIMEOUT_SECONDS)
                yield np.stack([draws[seed] for seed in sorted(draws)]), {}
                barrier.wait()
        except threading.BrokenBarrierError:
            raise NumericalError("nutpie: a chain has failed", "change seed") from None
        finally:
            barrier.abort()
            background.cancel()
