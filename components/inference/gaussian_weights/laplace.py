"""Linearised Laplace: a Gaussian posterior of network weights with the curvature at the mode as
precision."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import nn

from components.contracts.capabilities import (
    AffineLayers,
    OwnInputs,
    Penalised,
    TrainingStart,
    WeightSpace,
)
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, NumericalError
from components.inference.gaussian_weights.linearised import (
    Evidence,
    LinearisedPosterior,
    gauss_newton,
)
from components.inference.gaussian_weights.modes import SeveralModes, distinct
from components.inference.point.descent import DescentKeys, descend, frozen, loss
from components.maths.optimizers import Optimizer
from components.problems.supervised import Supervised
from components.registry import register

MOST_WEIGHTS = 10_000  # largest number of weights with a full covariance


@dataclass(kw_only=True)
class LaplaceState:
    """A network in training, its optimizer, and the rows for the curvature."""

    network: Penalised
    optimizer: Optimizer
    train: Batch = not_checkpointed()
    # of the other modes; None means a single mode
    others: nn.ModuleList | None = None
    others_optimizer: Optimizer | None = None


@register("inference", "laplace")
class LinearisedLaplace(Inference[WeightSpace, Supervised, Batch, LaplaceState], DescentKeys):
    """Linearised Laplace: training to a posterior mode, then a Gaussian from its curvature.

        θ̂ = argmin −Σ_n log p(y_n|x_n, θ) − log p(θ)        by minibatches, as ``map``
        q(θ) = N(θ̂, H⁻¹),  H = κ⁻¹ Σ_n J_nᵀ Λ_n J_n + (c S)⁻¹
        J_n = ∂f(x_n)/∂θ at θ̂ [T C, P],  S = diag s² of the prior
        f*(x) ~ N(f(x; θ̂), J(x) H⁻¹ J(x)ᵀ)

    For real labels κ σ² is added in closed form; classes are predicted by draws.  Λ is the Hessian
    of −log p(y|f) with respect to f (Gauss-Newton); H is full, its diagonal, or the H of the last
    layer, in which case only the weights of that layer are uncertain.  ``evidence`` takes c and κ
    (of real labels) where Laplace's log p(D) at this θ̂ is stationary, by MacKay's updates;
    otherwise both are 1.  This log p(D) is the score ``log_evidence``; it is not a bound.  With
    several ``modes``, one network is trained from a separate start for each, and

        q(θ) = Σ_k w_k N(θ̂_k, H_k⁻¹),  w_k ∝ p(D | mode k), the Laplace evidence

    where a θ̂ within √m standard deviations of a better one counts as the same mode.

    Raises:
        ConfigMismatchError: a full covariance is requested for too many weights.
        NumericalError: training diverged, so the curvature is not finite.

    Source: MacKay (1992), section 4; Immer, Korzepa and Bauer (2021), eq. (8); Daxberger et
    al. (2021), section 2; Buntine and Weigend (1991), on several modes.
    """

    requires = Requirements(
        kinds={"supervised"},
        capabilities={Penalised, WeightSpace, OwnInputs},
    )

    structure: Literal["full", "diagonal", "last_layer"]
    hyperparameters: Literal["trained", "evidence"]
    n_predict: PositiveInt
    modes: PositiveInt

    def asked_by_keys(self) -> dict[type, str]:
        return {AffineLayers: "structure"} if self.structure == "last_layer" else {}

    def uncertain(self, network: WeightSpace) -> int:
        """m, the number of weights in q (the last entries of θ)."""
        if self.structure != "last_layer":
            return len(network.theta)
        assert isinstance(network, AffineLayers)
        return sum(part.numel() for part in network.layers(network.theta)[-1])

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> LaplaceState:
        m = self.uncertain(model)
        if self.structure != "diagonal" and m > MOST_WEIGHTS:
            raise ConfigMismatchError(
                f"inference.structure={self.structure}: needs the covariances of {m:,} weights, but "
                f"at most {MOST_WEIGHTS:,} are supported; use diagonal or last_layer, or smaller model.widths"
            )
        assert isinstance(model, Penalised)  # guaranteed by ``requires``
        optimizer = self.build_optimizer(model.parameters())
        state = LaplaceState(network=model, optimizer=optimizer, train=problem.train)
        if self.modes > 1:
            state.others = self.init_others(model, rng)
            state.others_optimizer = self.build_optimizer(state.others.parameters())
        return state

    def init_others(self, model: WeightSpace, rng: Rng) -> nn.ModuleList:
        """Copies of the network with other starts.

        Raises ConfigMismatchError if the network has no other start."""
        if not isinstance(model, TrainingStart):
            raise ConfigMismatchError(
                f"inference.modes={self.modes}: the network has only one start; use model=mlp, or "
                f"modes=1"
            )
        others: list[WeightSpace] = []
        for start in model.initial(self.modes - 1, rng.init):
            other = copy.deepcopy(model)
            with torch.no_grad():
                other.theta.copy_(start[: len(other.theta)])  # without learned noise
            others.append(other)
        return nn.ModuleList(other for other in others if isinstance(other, nn.Module))

    def step(self, state: LaplaceState, batch: Batch, rng: Rng) -> tuple[LaplaceState, Info]:
        info = descend(state.network, state.optimizer, batch, None)
        if state.others is not None and state.others_optimizer is not None:
            losses = []
            for other in state.others:
                assert isinstance(other, Penalised)
                fit = other.log_prob(other(batch.x, None), batch)
                losses.append(loss(other, batch, fit)[0])
            state.others_optimizer.descend(torch.stack(losses).sum())
        return state, info

    def posterior(self, state: LaplaceState) -> LinearisedPosterior | SeveralModes:
        first = self.around(state.network, state.train)
        if state.others is None:
            return first
        fits = [first]
        for other in state.others:
            assert isinstance(other, Penalised)
            fits.append(self.around(other, state.train))
        return SeveralModes(tuple(distinct(fits)), self.n_predict)

    def around(self, trained: Penalised, train: Batch) -> LinearisedPosterior:
        """The Gaussian around one mode."""
        network = frozen(trained)
        assert isinstance(network, WeightSpace)
        m = self.uncertain(network)
        # [m, m] or [m]
        curvature = gauss_newton(network, train, m, self.structure == "diagonal")
        deviations = network.prior_std[-m:].double()  # s [m]
        evidence = self.evidence(network, train, curvature, deviations)
        c, kappa = evidence.maximum() if self.hyperparameters == "evidence" else (1.0, 1.0)
        precision = 1 / (c * deviations.square())
        if curvature.ndim == 1:
            root = (curvature / kappa + precision).sqrt()
        else:
            root, info = torch.linalg.cholesky_ex(curvature / kappa + precision.diag())
            if bool(info):
                raise NumericalError(
                    "the curvature at θ̂ is not positive definite", "lower inference.lr"
                )
        return LinearisedPosterior(network, root, kappa, evidence.value(c, kappa), self.n_predict)

    @staticmethod
    @torch.no_grad()
    def evidence(
        network: WeightSpace, train: Batch, curvature: torch.Tensor, s: torch.Tensor
    ) -> Evidence:
        """Terms of log p(D); raises NumericalError if it is not finite."""
        if not torch.isfinite(curvature).all():
            raise NumericalError(
                "the weights of the network became non-finite", "lower inference.lr"
            )
        f = network(train.x)
        predictive = network.output_predictive(f.unsqueeze(0))
        labels = 0
        residual = 0.0
        if isinstance(predictive, GaussianMixture):
            labels = int(train.mask.sum())
            error = torch.where(train.mask, train.y, predictive.mu[0]) - predictive.mu[0]
            residual = float((error.square() / predictive.v[0]).double().sum())
        scaled = curvature * s.square() if curvature.ndim == 1 else curvature * torch.outer(s, s)
        values = scaled if scaled.ndim == 1 else torch.linalg.eigvalsh(scaled).clamp_min(0)
        square = float((network.theta[-len(s) :].double() / s).square().sum())
        log_likelihood = float(network.log_prob(f, train).double().sum())
        return Evidence(log_likelihood, labels, residual, square, values)
