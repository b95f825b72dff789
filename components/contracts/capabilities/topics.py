"""Capabilities of models of documents."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class TopicModel:
    """Latent Dirichlet allocation: π_i ~ Dir(α), z_iℓ ~ Cat(π_i), y_iℓ ~ Cat(B_z), B_k ~ Dir(η)."""

    alpha: Tensor  # [K]
    eta: Tensor  # [V]; γ in the source
