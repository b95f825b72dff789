"""Capabilities of structural series: forecasts, a compiled structure, and a known response to inputs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from components.contracts.capabilities.modules import ModuleProtocol
from components.contracts.predictive import Predictive
from components.contracts.sequences import Series
from components.contracts.structural import Design, Structure
from components.maths.time_varying import TimeVaryingSystem


@runtime_checkable
class ForecastsSeries(Protocol):
    """Forecasts of the observations after a series, from K parameter sets.

    The hidden states are marginalised.
    """

    # θ [K, P]; of y_{T+1} … y_{T+H} given y_1:T, a mixture of K, [K, H, dy]
    def forecast(self, theta: Tensor, series: Series, horizon: int) -> Predictive: ...


@runtime_checkable
class KnownResponse(Protocol, metaclass=ModuleProtocol):
    """A system with a known response to its inputs and known relevance of its columns."""

    @property
    # of regressors and inputs by name; 0: no effect
    def coefficients(self) -> dict[str, float]: ...

    def effect(self, horizon: int) -> Tensor: ...  # of u_{T+j} on y_{T+1+h} [k, k, c], 0 for j > h


@runtime_checkable
class StructuralSeries(Protocol, metaclass=ModuleProtocol):
    """A series as a sum of blocks with a declared structure, as input for compiled sweeps."""

    @property
    def structure(self) -> Structure: ...

    # of the T observed times and the given number of later times
    def design(self, series: Series, ahead: int = 0) -> Design: ...

    # of θ [C, P], with λ = 1
    def system(self, theta: Tensor, design: Design) -> TimeVaryingSystem: ...

    # x_t, with stocks accumulated by the φ of θ [C, n, p]
    def columns(self, theta: Tensor, design: Design) -> Tensor: ...
