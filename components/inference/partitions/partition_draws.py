"""Draws of a partition of the training rows into Gaussian clusters.

The cluster means and precisions are integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from components.contracts.checks import Check, NamedScores
from components.contracts.problems import Rows
from components.contracts.roles import FinishedRun
from components.maths.compiled.loops import Array
from components.maths.exponential.normal_wishart import NormalWishart
from components.metrics import diagnostics
from components.posteriors.draws import Draws
from components.posteriors.partitions import (
    ExpectedLoss,
    PartitionLoss,
    expected_binder,
    expected_variation,
    least,
    relabel_by_appearance,
    together,
)
from components.posteriors.tables import write_tables

if TYPE_CHECKING:
    from components.figures.style import Figures

MAX_PREDICTIVE_DRAWS = 200  # evenly spaced draws whose predictive densities are mixed
MAX_LOSS_DRAWS = 1000  # evenly spaced draws for expected losses
LOSSES: dict[str, PartitionLoss] = {
    "binder": expected_binder,
    "variation": expected_variation,
}


@dataclass(frozen=True)
class PartitionDraws:
    """z of C chains, predictive densities of new rows, and the partitions with the smallest
    expected losses."""

    concentration: float
    prior: NormalWishart
    x: Tensor  # training rows [N, D]
    z: Tensor  # long [C, S, N]
    log_joint: Tensor  # log p(z, x) [C, S]
    loss: str  # of LOSSES; its Bayes action is plotted
    accepted: float  # share of accepted split–merge proposals; NaN: none were made

    @cached_property
    def labels(self) -> Array:
        """All draws, with clusters in order of appearance [C·S, N]."""
        return relabel_by_appearance(self.z.flatten(0, 1).numpy())

    @property
    def sizes(self) -> Tensor:
        """Number of clusters in every draw [C, S]."""
        return torch.as_tensor(self.labels.max(1) + 1).reshape(self.z.shape[:2])

    @property
    def summaries(self) -> Draws:
        """Label-invariant summaries for comparing chains: number of clusters and log p(z, x)."""
        both = torch.stack([self.sizes.double(), self.log_joint], 2)  # [C, S, 2]
        return Draws(both, both[:, 0], ["clusters", "log_joint"])

    @cached_property
    def expected_losses(self) -> dict[str, ExpectedLoss]:
        some = _evenly_spaced(self.labels, MAX_LOSS_DRAWS)
        return {name: loss(some) for name, loss in LOSSES.items()}

    @cached_property
    def actions(self) -> dict[str, Array]:
        """The Bayes action under each loss [N]."""
        some = _evenly_spaced(self.labels, MAX_LOSS_DRAWS)
        return {name: least(expected, some) for name, expected in self.expected_losses.items()}

    @property
    def bayes_action(self) -> Array:
        """The Bayes action used for figures and held-out clusters [N]."""
        return self.actions[self.loss]

    @property
    def together(self) -> Array:
        """Posterior probability that two rows share a cluster [N, N]."""
        return together(self.labels)

    def _log_predictive_by_cluster(self, z: Array, batch: Rows) -> Tensor:
        """log p(x_b, cluster k | z, training rows) for the clusters of z and a new one [K + 1,
        B]."""
        K = int(z.max()) + 1
        x = batch.x.flatten(1).to(self.x)
        rows = torch.nn.functional.one_hot(torch.as_tensor(z), K + 1).to(self.x).T  # [K + 1, N]
        weights = rows.sum(1)
        weights[K] = self.concentration
        share = (weights / (len(self.x) + self.concentration)).log()
        return share[:, None] + self.prior.posterior(rows, self.x).log_predictive(x)

    def log_predictive(self, batch: Rows) -> Tensor:
        """log S⁻¹ Σ_s p(x_b | z_s, training rows), a mixture of Student's t under each draw [B]."""
        each = torch.stack(
            [
                self._log_predictive_by_cluster(z, batch).logsumexp(0)
                for z in _evenly_spaced(self.labels, MAX_PREDICTIVE_DRAWS)
            ]
        )
        return each.logsumexp(0) - np.log(len(each))

    def clusters(self, batch: Rows) -> Tensor:
        """Probabilities of the action's clusters, and of a new one, for new rows [B, K + 1]."""
        return self._log_predictive_by_cluster(self.bayes_action, batch).softmax(0).T

    def scores(self) -> NamedScores:
        out: NamedScores = {"n_clusters": float(self.sizes.double().mean())}
        for name, action in self.actions.items():
            out |= {
                f"expected_loss/{name}": self.expected_losses[name].cost(action),
                f"n_clusters/{name}": float(action.max() + 1),
            }
        if not np.isnan(self.accepted):
            out["acceptance"] = self.accepted
        draws = self.summaries.draws
        if draws.shape[1] >= diagnostics.FEWEST_DRAWS:
            each = {"ess": diagnostics.bulk_ess(draws), "ess_tail": diagnostics.tail_ess(draws)}
            if len(draws) > 1:
                each["rhat"] = diagnostics.split_rhat(draws)
            for name, values in each.items():
                rests = diagnostics.resting(draws)  # the number of clusters never changes
                out[name] = float(
                    diagnostics.worst_coordinate_value(values, rests, largest=name == "rhat")
                )
        return out

    def checks(self, run: FinishedRun) -> list[Check]:
        """Checks that the summaries of the chains agree; few splits are accepted if few are
        possible."""
        names = ("rhat", "ess", "ess_tail")
        compared = {name: run.scores[name] for name in names if name in run.scores}
        return self.summaries.checks(replace(run, scores=compared))

    def figures(self) -> Figures:
        from components.figures.partitions.co_clustering import co_clustering

        figure = co_clustering(self.x, self.sizes, self.together, self.bayes_action, self.loss)
        return {"co_clustering": figure}

    def artefacts(self, folder: Path) -> list[Path]:
        """The tables ``partitions`` (Bayes actions) and ``number_of_clusters`` (probability of each
        number)."""
        import pandas as pd

        k, n = np.unique(self.sizes.numpy(), return_counts=True)
        tables = {
            "partitions": pd.DataFrame({"row": range(len(self.x)), **self.actions}),
            "number_of_clusters": pd.DataFrame({"clusters": k, "probability": n / n.sum()}),
        }
        return write_tables(folder, tables)


def _evenly_spaced(z: Array, most: int) -> Array:
    """At most the given number of rows, evenly spaced."""
    return z[np.linspace(0, len(z) - 1, min(most, len(z))).round().astype(int)]
