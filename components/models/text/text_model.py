"""Keys that all networks for texts have, and what they offer."""

from __future__ import annotations

from typing import ClassVar

from pydantic import PositiveFloat

from components.contracts.problems import Domain
from components.contracts.roles import M, Model
from components.models.networks.feed_forward import DropoutRate
from components.problems.supervised import Supervised


class TextModel(Model[Supervised, M]):
    """A network that reads rows of tokens and tells classes: θ ~ N(0, s²), dropout in training."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    targets: ClassVar[frozenset[str] | None] = frozenset({"binary", "classes"})
    domains: ClassVar[frozenset[Domain]] = frozenset({"tokens"})
    differentiable: ClassVar[bool] = False
    offers: ClassVar[frozenset[str]] = frozenset({"network", "penalised"})
    offers_where: ClassVar[dict[str, str]] = {"dropout": "dropout above 0"}

    dropout: DropoutRate
    prior_std: PositiveFloat

    def offered(self) -> frozenset[str]:
        return self.offers | (self.offers_where.keys() if self.dropout else set())
