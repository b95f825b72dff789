"""Linear Gaussian state-space model with user-given matrices.

The noise scales may be unknown.
"""

from __future__ import annotations

from collections.abc import Set

from pydantic import model_validator
from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.linear_gaussian import SHAPES, Matrix, make_system, tensors
from components.series.models.families import UnknownParameterModel
from components.series.models.linear_gaussian_ssm import (
    LinearGaussianModule,
    linear_gaussian_system,
)
from components.series.models.unknown import PositivePrior, Priors, UnknownParameters
from components.series.sequence import LinearGaussianSystem, Sequence


class NoiseScales(Priors):
    """Priors of standard deviations; None keeps the covariance of the model."""

    observation_sd: PositivePrior | None  # (tr Σ / dy)^½
    state_sd: PositivePrior | None  # (tr Q / dx)^½


def rescale_system(system: LinearGaussian, sd: dict[str, Tensor]) -> LinearGaussianSystem:
    """System with Σ and Q rescaled to root mean variances observation_sd and state_sd.

    Σ and Q keep their shape; the scales are [] or [K] each.
    """

    def scale_covariance(covariance: Tensor, name: str) -> Tensor:
        if name not in sd:
            return covariance
        factor = sd[name].square() / covariance.diagonal().mean()
        return factor[..., None, None] * covariance  # [d, d] or [K, d, d]

    Sigma = scale_covariance(system.Sigma, "observation_sd")
    Q = scale_covariance(system.Q, "state_sd")
    return LinearGaussianSystem(system.A, Q, system.H, Sigma, system.m0, system.P0)


class UnknownScales(UnknownParameters, LinearGaussianModule):
    """``Parameterised`` linear Gaussian model with unknown noise scales.

    The noises keep the covariance shape of a given system. Used directly, the model takes
    the centres of the priors.
    """

    def __init__(self, system: LinearGaussian, priors: NoiseScales):
        super().__init__(
            rescale_system(
                system, {name: system.Q.new_tensor(sd) for name, sd in priors.centres.items()}
            )
        )
        self.declare(priors.given_priors, self.m0)

    def at(self, theta: Tensor) -> LinearGaussianModule:
        return LinearGaussianModule(rescale_system(self, self.by_name(theta)))


@register("model", "lgssm")
class Lgssm(UnknownParameterModel):
    """Linear Gaussian state-space model with user-given matrices; noise scales may be unknown.

    x_0 ~ N(m_0, P_0), x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ); particles
    [R, N, dx]. A null matrix takes the value of the simulated system.  With a prior,
    ``observation_sd`` = (tr Σ/dy)^½ or ``state_sd`` = (tr Q/dx)^½ is unknown, and the matrix gives
    only the shape of the covariance.

    Raises ValueError or ConfigMismatchError, which names the key, if a matrix does not match the
    size of the others or of the data, is not a covariance, or is null for data that were not
    simulated by a linear Gaussian system.

    Source: Boustati (2021), eqs. (6.16), (6.17); Andrieu, Doucet and Holenstein (2010),
    section 2.
    """

    requires = Requirements(kinds={"sequence"}, simulated={LinearGaussian})
    A: Matrix | None
    Q: Matrix | None
    H: Matrix | None
    Sigma: Matrix | None
    m0: list[float] | None
    P0: Matrix | None
    unknown: NoiseScales

    @model_validator(mode="after")
    def _fits(self) -> Lgssm:
        matrices = tensors(self._given_matrices())
        if len(matrices) == len(SHAPES):
            make_system(matrices)
        return self

    def _given_matrices(self) -> dict[str, Matrix | list[float]]:
        return {
            name: value
            for name, value in dict(self).items()
            if name in SHAPES and value is not None
        }

    def assumptions(self) -> Set[type]:
        """Empty if every matrix is given."""
        return (
            frozenset() if len(self._given_matrices()) == len(SHAPES) else self.requires.simulated
        )

    def build(self, problem: Sequence, rng: Rng) -> LinearGaussianModule:
        like = problem.observations
        matrices = tensors(self._given_matrices())
        if len(matrices) < len(SHAPES):
            assumed = linear_gaussian_system(problem, self.name)
            theirs = {name: getattr(assumed, name).cpu().double() for name in SHAPES}
            matrices = theirs | matrices
        try:
            system = make_system(matrices)
        except ValueError as wrong:
            raise ConfigMismatchError(f"model.{wrong}") from None
        if len(system.H) != like.shape[2]:
            raise ConfigMismatchError(
                f"model.H: has {len(system.H)} rows, but dataset={problem.name} observes {like.shape[2]} values at a time"
            )
        placed = LinearGaussianSystem(
            **{name: matrix.to(like) for name, matrix in vars(system).items()}
        )
        return (
            UnknownScales(placed, self.unknown)
            if self.unknown.given_priors
            else LinearGaussianModule(placed)
        )
