"""Coin tosses with a conjugate prior of the probability."""

from __future__ import annotations

import math

from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.problems.unlabelled import Unlabelled
from components.registry import register


class BetaBernoulliModule(nn.Module):
    """θ ~ Beta(a, b), x_i | θ ~ Bernoulli(θ), x [B, 1]."""

    def __init__(self, prior: tuple[float, float]):
        super().__init__()
        self.prior = prior

    def counts(self, rows: Rows) -> tuple[int, int]:
        """Heads and tails."""
        heads = int(rows.x.sum())
        return heads, rows.x.numel() - heads

    def log_predictive(self, counts: tuple[int, int], rows: Rows) -> Tensor:
        """log p(x | heads h, tails t) of single tosses [B], with probability of heads (a + h)/(a +
        b + h + t)."""
        a, b = (p + n for p, n in zip(self.prior, counts, strict=True))
        heads = rows.x[:, 0]
        return heads * math.log(a / (a + b)) + (1 - heads) * math.log(b / (a + b))


@register("model", "beta_bernoulli")
class BetaBernoulli(Model[Unlabelled, BetaBernoulliModule]):
    """Independent coin tosses with a beta prior on the probability of heads.

    θ ~ Beta(a, b), x_i | θ ~ Bernoulli(θ);  θ | h heads, t tails ~ Beta(a + h, b + t), for
    any stopping rule.

    Raises ConfigMismatchError if a row has more than one value.

    Source: Robert (2007), section 3.3; Bardenet (2021), section 3.1.3.
    """

    requires = Requirements(
        kinds={"unlabelled"},
        values={"binary"},
        required_traits={"single_values": "supports only one value per row"},
    )
    a: PositiveFloat
    b: PositiveFloat

    def build(self, problem: Unlabelled, rng: Rng) -> BetaBernoulliModule:
        if problem.train.x.shape[1:] != (1,):
            raise ConfigMismatchError(
                f"model={self.name}: requires rows of one value, but rows of dataset={problem.name} have more; use vae"
            )
        return BetaBernoulliModule((self.a, self.b))
