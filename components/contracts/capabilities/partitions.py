"""Capabilities of models with a prior over partitions of the rows."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from components.contracts.capabilities.modules import ModuleProtocol
from components.maths.exponential.normal_wishart import NormalWishart


@runtime_checkable
class DirichletProcess(Protocol, metaclass=ModuleProtocol):
    """Clusters of a Dirichlet process α NW.

    Rows of a cluster are normal; mean and precision are drawn from the base measure.
    p(partition) = α^K Γ(α)/Γ(α + N) Π_k Γ(n_k), independent of any truncation that a method may
    use.
    """

    @property
    def concentration(self) -> float: ...  # α

    @property
    def prior(self) -> NormalWishart: ...  # the base measure, without leading dimensions
