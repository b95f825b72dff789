"""Capabilities of models of documents."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class TopicModel(Protocol):
    """Latent Dirichlet allocation: π_i ~ Dir(α), z_iℓ ~ Cat(π_i), y_iℓ ~ Cat(B_z), B_k ~ Dir(η)."""

    @property
    def alpha(self) -> Tensor: ...  # [K]

    @property
    def eta(self) -> Tensor: ...  # γ of the notes [V]
