"""Survival on the Titanic."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.tables.put_aside import HeldOutRows
from components.problems.supervised import Supervised
from components.registry import register

# Persons by class (first, second, third, crew), sex (male, female), age (adult, child) and fate
# (died, survived).
COUNTS = (
    (((118, 57), (0, 5)), ((4, 140), (0, 1))),
    (((154, 14), (0, 11)), ((13, 80), (0, 13))),
    (((387, 75), (35, 13)), ((89, 76), (17, 14))),
    (((670, 192), (0, 0)), ((3, 20), (0, 0))),
)


def persons() -> Tensor:
    """One row for each person [2201, 4]: class 1 to 4 (crew), age (1 child), sex (1 male), fate (1
    survived)."""
    table = torch.tensor(COUNTS)  # [4, 2, 2, 2]
    cells = torch.cartesian_prod(*(torch.arange(n) for n in table.shape))  # [32, 4]
    rows = cells.repeat_interleave(table.flatten(), 0)
    return torch.stack([1 + rows[:, 0], rows[:, 2], 1 - rows[:, 1], rows[:, 3]], 1)


@register("dataset", "titanic")
class Titanic(Dataset, HeldOutRows):
    """Survival of the 2,201 persons on the Titanic by class, age and sex.

    The data are a built-in 4 × 2 × 2 × 2 table of counts.  Inputs: class (first 1, second 2, third
    3, crew 4), age (child 1), sex (male 1), standardised by the training rows; the constant in the
    thesis' feature vector of length 4 is the model's intercept here, because a constant cannot be
    standardised.  y = 1: survived.  ``n_test`` persons, drawn from the seed, are held out; 0 trains
    on all and scores the same rows, as in the thesis. x [N, 3], y [N, 1].

    Raises:
        ConfigMismatchError: no rows are left to learn from.

    Source: Dawson (1995), Table 1; Boustati (2021), appendix B.2.1.
    """

    kind = "supervised"
    label_kind = "binary"

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        rows = persons()
        return self.make_problem(
            self.name,
            rows[:, :3].double(),
            rows[:, 3:],
            target="binary",
            task="survived",
            rng=rng,
            setting=setting,
        )
