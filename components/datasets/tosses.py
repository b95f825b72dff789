"""Observed tosses of a coin."""

from __future__ import annotations

import torch
from pydantic import NonNegativeInt, PositiveInt

from components.contracts.problems import Rows
from components.contracts.roles import Dataset, Setting, ZeroToOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("dataset", "tosses")
class Tosses(Dataset[Unlabelled]):
    """A given number of heads and tails of one coin, with held-out tosses to score.

    x_i = 1 (heads) or 0 (tails), [N, 1]; the order is random, except that the last toss is a tail
    if there is one, so the tosses may come from a fixed number of tosses or from tossing until the
    last tail. Held-out rows are Bernoulli(``theta``), with a known probability.

    Raises:
        ConfigMismatchError: the numbers of heads and tails are both 0.

    Source: Lindley & Phillips (1976), 9 heads and 3 tails; Bardenet (2021), section 3.1.3.
    """

    kind = "unlabelled"
    traits = {"single_values"}
    values = "binary"
    heads: NonNegativeInt
    tails: NonNegativeInt
    theta: ZeroToOne
    n_test: PositiveInt

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        if self.heads + self.tails == 0:
            raise ConfigMismatchError(
                "dataset.heads=0, dataset.tails=0: at least one toss is required; raise one of them"
            )
        last = min(self.tails, 1)
        x = torch.zeros(self.heads + self.tails, 1, dtype=setting.dtype)
        order = torch.randperm(len(x) - last, generator=rng.data)
        x[order[: self.heads]] = 1.0
        held_out = (torch.rand(self.n_test, 1, generator=rng.data) < self.theta).to(setting.dtype)
        train, test = (Rows(rows.to(setting.device), 1.0) for rows in (x, held_out))
        return Unlabelled(self.name, "binary", train, test, batch_size=None)
