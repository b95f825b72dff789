"""Input of the analyses of a linear regression: design, labels, and source of repetitions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.maths.least_squares import LeastSquares, least_squares
from components.models.linear.design import design, select_labelled
from components.problems.supervised import Supervised


@dataclass(frozen=True)
class LinearData:
    """y ~ N(Xβ, σ² I) as it was seen, and the β and σ² with which it can be imagined again.

    Those are the true ones where the data were simulated, otherwise the estimates (a parametric
    bootstrap)."""

    X: Tensor  # [N, D]
    y: Tensor  # [N]
    names: list[str]  # of the D coefficients
    known_noise: float | None  # σ², where the model knows it
    beta: Tensor  # [D], of the repetitions
    noise: float  # σ² of the repetitions
    is_simulated: bool  # whether those two are the truth

    @property
    def fit(self) -> LeastSquares:
        return least_squares(self.X, self.y, self.known_noise)

    def errors(self, n: int, generator: torch.Generator) -> Tensor:
        """σ ε of n imagined data sets, [n, N]."""
        X = self.X
        e = torch.randn(n, len(X), generator=generator, dtype=X.dtype, device=generator.device).to(
            X.device
        )
        return self.noise**0.5 * e

    def sample_datasets(self, n: int, generator: torch.Generator) -> LeastSquares:
        """Least squares on n imagined data sets y* ~ N(Xβ, σ² I)."""
        return least_squares(
            self.X, self.X @ self.beta + self.errors(n, generator), self.known_noise
        )


def read_linear_data(model: Conjugate, problem: Supervised) -> LinearData:
    """The training rows as a linear model sees them."""
    X, y = select_labelled(problem.train, model.intercept)
    known_noise = None if isinstance(model.noise, tuple) else float(model.noise)
    names = list(model.names)[: X.shape[1]]
    if problem.truth:
        zero = X.new_zeros(int(model.intercept))
        beta = torch.cat([zero, problem.truth["beta"]])
        noise = float(problem.truth["noise"])
        return LinearData(X, y, names, known_noise, beta, noise, True)
    fit = least_squares(X, y, known_noise)
    return LinearData(X, y, names, known_noise, fit.beta, float(fit.noise), False)


def plug_in(
    data: LinearData, x: Tensor, beta: Tensor, noise: Tensor | float, model: Conjugate
) -> tuple[Tensor, Tensor]:
    """μ and v [1, B, 1] of N(xᵀβ, σ²): what an estimate predicts when its error is forgotten."""
    mean = (design(x, model.intercept) @ beta)[None, :, None]
    return mean, torch.as_tensor(noise, dtype=mean.dtype, device=mean.device).expand_as(mean)
