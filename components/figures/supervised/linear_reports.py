"""Report attributes that the figures of the four statisticians use."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from components.maths.conjugate_regression import Coefficients
from components.maths.least_squares import LeastSquares


class RegressionData(Protocol):
    """A linear regression as it was seen, and the β [D] with which it was, or could have been,
    simulated."""

    @property
    def names(self) -> list[str]: ...  # of the D coefficients

    @property
    def beta(self) -> Tensor: ...  # [D]

    @property
    def is_simulated(self) -> bool: ...  # whether β is the truth

    @property
    def fit(self) -> LeastSquares: ...


class FisherReport(Protocol):
    """β̂ with its confidence region and the simulated coverage of the region."""

    @property
    def data(self) -> RegressionData: ...

    @property
    def fit(self) -> LeastSquares: ...

    @property
    def level(self) -> float: ...

    @property
    def inside(self) -> dict[float, int]: ...  # level -> repeated data sets with β in the region

    @property
    def n(self) -> int: ...  # repeated data sets

    @property
    def cloud(self) -> Tensor: ...  # estimates of the first of them [·, D]

    def coverage(self, level: float) -> tuple[float, float]: ...  # and its standard error


class WaldReport(Protocol):
    """Risk functions of E estimators at M points of a ray, and their integrals."""

    @property
    def data(self) -> RegressionData: ...

    @property
    def loss(self) -> str: ...

    @property
    def multiples(self) -> list[float]: ...  # [M]

    @property
    def risk(self) -> Tensor: ...  # [E, M]

    @property
    def error(self) -> Tensor: ...  # [E, M]

    @property
    def bayes_risk(self) -> Tensor: ...  # [E]

    @property
    def bayes_error(self) -> Tensor: ...  # [E]


class SavageReport(Protocol):
    """The posterior of β, its credible region, and the probabilities of models."""

    @property
    def data(self) -> RegressionData: ...

    @property
    def theta_draws(self) -> Tensor: ...  # draws of θ, β first [·, P]

    @property
    def known_coefficients(self) -> Coefficients: ...

    @property
    def noise(self) -> float | tuple[float, float]: ...  # σ², or (a, b) of its posterior InvGamma

    @property
    def level(self) -> float: ...

    @property
    def scale(self) -> float: ...

    @property
    def radius(self) -> float: ...

    @property
    def model_probabilities(self) -> Tensor: ...  # [M]

    @property
    def candidates(self) -> list[str]: ...  # [M]


class RidgeReport(Protocol):
    """Ridge estimates for each of Λ penalties, and the risk of each."""

    @property
    def data(self) -> RegressionData: ...

    @property
    def penalties(self) -> Tensor: ...  # [Λ]

    @property
    def path(self) -> Tensor: ...  # [Λ, D]

    @property
    def variance(self) -> Tensor: ...  # [Λ]

    @property
    def bias(self) -> Tensor: ...  # [Λ]

    @property
    def selected(self) -> dict[str, float]: ...  # λ by every rule

    def risk(self, penalty: float) -> float: ...
