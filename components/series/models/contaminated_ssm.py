"""The state-space model with the true contamination of its observations: the oracle."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LinearGaussian, NoiseLaw
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.registry import register
from components.series.models.families import UnknownParameterModel
from components.series.models.lgssm import NoiseScales, rescale_system
from components.series.models.linear_gaussian_ssm import (
    BorrowedDynamics,
    LinearGaussianModule,
    factor,
    linear_gaussian_system,
    log_determinant,
)
from components.series.models.unknown import UnknownParameters
from components.series.sequence import Sequence


class ContaminatedModule(BorrowedDynamics, nn.Module):
    """``StateSpace`` with linear Gaussian dynamics and mixture-of-Gaussians observation noise.

    Covariances are shared by all replicates, or [C, R, dy, dy] for each.
    """

    whiten: Tensor  # [C, dy, dy] or [C, R, dy, dy]
    log_weight: Tensor  # [C, 1] or [C, R, 1]

    def __init__(self, dynamics: LinearGaussianModule, weights: Tensor, covariances: Tensor):
        super().__init__()
        self.dynamics = dynamics
        factors = factor(covariances, "a mixture covariance")
        self.register_buffer("whiten", torch.linalg.inv(factors))
        constant = log_determinant(factors) + 0.5 * covariances.shape[-1] * LOG_2PI
        self.register_buffer(
            "log_weight", weights.log().view(-1, *[1] * (constant.dim() - 1)) - constant
        )

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        total = x.new_full((), -math.inf)
        for whiten, log_weight in zip(self.whiten, self.log_weight, strict=True):
            whitened = y.unsqueeze(-2) @ whiten.mT - x @ (whiten @ self.dynamics.H).mT  # [R, N, dy]
            total = torch.logaddexp(total, log_weight - 0.5 * whitened.square().sum(-1))
        return total  # log Σ_c w_c N(y | Hx, Σ_c)  # [R, N]


class UnknownContaminated(UnknownParameters, ContaminatedModule):
    """``Parameterised``: noise scales with priors.  Used directly, the model takes the centres of
    the priors."""

    def __init__(self, system: LinearGaussian, law: NoiseLaw | None, priors: NoiseScales):
        centres = {name: system.Q.new_tensor(sd) for name, sd in priors.centres.items()}
        centre = rescale_system(system, centres)
        super().__init__(LinearGaussianModule(centre), *mixture(law, centre.Sigma))
        self.declare(priors.given_priors, system.m0)
        self._shape = centre
        self._law = law

    def at(self, theta: Tensor) -> ContaminatedModule:
        system = rescale_system(self._shape, self.by_name(theta))
        return ContaminatedModule(LinearGaussianModule(system), *mixture(self._law, system.Sigma))


def mixture(law: NoiseLaw | None, Sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Weights [C] and covariances of the noise; without an attacker, only Σ."""
    return (Sigma.new_ones(1), Sigma.unsqueeze(0)) if law is None else law.mixture(Sigma)


@register("model", "contaminated_ssm")
class ContaminatedSSM(UnknownParameterModel):
    """Oracle: the linear Gaussian state-space model with the true, contaminated distribution of the
    observation noise.

    y_t | x_t ~ Σ_c w_c N(H x_t, Σ_c), with weights and covariances from the problem's attacker,
    here (1 − p_c) N(H x_t, Σ) + p_c N(H x_t, Σ + s² I).  Without an attacker it is the linear
    Gaussian model.  Raises ConfigMismatchError if the attacker has no noise distribution, and on
    data of another system.  Scales of the clean noises may be unknown, as in ``lgssm``.

    Source: Boustati (2021), section 6.5.1 (Oracle BPF)."""

    requires = Requirements(
        kinds={"sequence"},
        simulated={LinearGaussian},
        attacker_capabilities={NoiseLaw},
    )

    unknown: NoiseScales

    def build(self, problem: Sequence, rng: Rng) -> ContaminatedModule:
        system = linear_gaussian_system(problem, self.name)
        law = problem.attacker
        if law is not None and not isinstance(law, NoiseLaw):
            raise ConfigMismatchError(
                f"model={self.name}: attacker={law.name} does not provide its noise distribution; use one "
                "that does (gaussian_contamination, student_t_outliers, multiplicative_exponential, missing)"
            )
        if self.unknown.given_priors:
            return UnknownContaminated(system, law, self.unknown)
        return ContaminatedModule(LinearGaussianModule(system), *mixture(law, system.Sigma))
