"""Results of filters that choose their β: the filtered states and how β was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.posteriors.tables import write_tables
from components.series.posteriors.filtered import Filtered
from components.series.scores.predictive_loss import smallest

if TYPE_CHECKING:
    from components.figures.style import Figures


@dataclass(frozen=True, kw_only=True)
class SelectedBeta(Filtered):
    """The states filtered at one β of a grid, and the losses on which the choice is based."""

    betas: list[float]  # [G]
    losses: Tensor  # (6.13) [G, R]
    chosen: int  # index of the β in the grid, the mode of ``best``
    best: Tensor  # index of each replicate's best β [R]
    scored_on: str  # quantity behind the losses, in words

    def scores(self) -> dict[str, Tensor]:
        """The chosen β, and the best β of each replicate on its own; [R]."""
        grid = self.losses.new_tensor(self.betas)
        return {
            "beta_selected": grid[self.chosen].expand(len(self.best)),
            "beta_of_replicate": grid[self.best],
        }

    def figures(self) -> Figures:
        """Loss against β."""
        from components.series.figures.beta_choice import beta_losses

        return {"beta": beta_losses(self.betas, self.losses.cpu(), self.chosen, self.scored_on)}

    def artefacts(self, folder: Path) -> list[Path]:
        """``tables/beta.csv``: the loss of each β over replicates, and the number of replicates for
        which it is best."""
        import pandas as pd

        losses = self.losses.double().cpu()
        counts = torch.bincount(self.best.cpu(), minlength=len(self.betas))
        table = pd.DataFrame(
            {
                "beta": self.betas,
                "loss": losses.mean(1).tolist(),
                "sd": losses.std(1, correction=0).tolist(),
            }
        )
        table["median"] = losses.nanquantile(0.5, dim=1).tolist()
        table["best_in"] = counts.tolist()
        table["chosen"] = [g == self.chosen for g in range(len(self.betas))]
        table["of"] = self.scored_on
        return write_tables(folder, {"beta": table})


@dataclass(frozen=True, kw_only=True)
class OnlineBeta(Filtered):
    """The states filtered with a β chosen at each time."""

    betas: list[float]  # [G]
    index: Tensor  # index of the β of each time in the grid [R, T]

    def scores(self) -> dict[str, Tensor]:
        """The β chosen most often, or the smallest of several; [R]."""
        often = torch.stack([(self.index == g).sum(1) for g in range(len(self.betas))])  # [G, R]
        return {"beta_most_often": self.mean.new_tensor(self.betas)[smallest(-often.double())]}

    def figures(self) -> Figures:
        """β over time."""
        from components.series.figures.beta_choice import beta_over_time

        return {"beta": beta_over_time(self.betas, self.index.cpu())}

    def artefacts(self, folder: Path) -> list[Path]:
        """``tables/beta.csv``: the β of every time, a column for each replicate."""
        import pandas as pd

        betas = torch.tensor(self.betas, dtype=torch.float64)[self.index.cpu()]  # [R, T]
        columns = {"t": range(1, self.t + 1)} | {
            f"replicate {r + 1}": row for r, row in enumerate(betas)
        }
        return write_tables(folder, {"beta": pd.DataFrame(columns)})
