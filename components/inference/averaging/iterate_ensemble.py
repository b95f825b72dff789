"""An ensemble of the iterates of gradient descent."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from components.contracts.capabilities import BatchNormalised, Penalised
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.inference.averaging.path import AveragedDescent, AveragedState, copy_frozen
from components.inference.point.descent import frozen
from components.maths.line_search.module_bound import assign, flatten
from components.posteriors.networks import Networks
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class IteratesState(AveragedState):
    """A network in training, and the collected iterates."""

    # rows (θ, batch normalisation statistics) [P + Q], on the CPU
    kept: Trace = field(default_factory=Trace)


def statistics(network: Penalised) -> list[Tensor]:
    """Running statistics of batch normalisation; empty if the network has none."""
    return network.statistics() if isinstance(network, BatchNormalised) else []


@register("inference", "iterate_ensemble")
class IterateEnsemble(AveragedDescent[Penalised, IteratesState]):
    """Ensemble of iterates: averages the predictions of networks along one optimisation path.

        θ_t = θ_{t−1} − lr_t · step(−N⁻¹ ∇ log p(θ, y))      as ``swa``
        p(y*|x*) = K⁻¹ Σ_k p(y*|x*, θ_{b + k c})             b = ``burn_in``, c = ``every``
        K = ⌊(t − b)/c⌋

    Predictions are averaged, not weights.  This is the "ensemble of 100 posterior samples" of the
    thesis, which calls it SWA; SWA itself is ``swa``.  Every iterate keeps its own batch
    normalisation statistics.  All K networks stay in memory.  Before the first iterate is
    collected, the current network predicts.

    Raises:
        NumericalError: a collected iterate is not finite.

    Source: Gallego (2021), section 1.3.4.
    """

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> IteratesState:
        return IteratesState(
            network=model,
            optimizer=self.build_optimizer(model.parameters()),
        )

    def collect(self, state: IteratesState, theta: Tensor) -> IteratesState:
        state.kept.append(flatten([theta, *statistics(state.network)]).cpu())
        return state

    def posterior(self, state: IteratesState) -> Networks[Penalised]:
        network = state.network
        if not len(state.kept):
            return Networks((frozen(network),))
        return Networks(tuple(self.restore_iterate(network, row) for row in state.kept.rows))

    @staticmethod
    @torch.no_grad()
    def restore_iterate(network: Penalised, row: Tensor) -> Penalised:
        """A frozen copy of a network with the weights and statistics of a collected row."""
        gathered = sum(part.numel() for part in statistics(network))
        iterate = copy_frozen(network, row[: len(row) - gathered])
        assign(statistics(iterate), row[len(row) - gathered :])
        return iterate
