"""Modules that learn from the gradients estimated with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import nn

from components.maths.optimizers import Adam

C = TypeVar("C", bound=nn.Module)


@dataclass
class Learnt(Generic[C]):
    """Module of a control variate or of a baseline, and its optimizer."""

    control: C
    optimizer: Adam

    @classmethod
    def begin(cls, control: C, lr: float) -> Learnt[C]:
        return cls(control, Adam(control.parameters(), lr))
