"""Generalised Bayes: any log joint of a supervised problem, with a loss instead of its
likelihood."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor, nn

from components.contracts.capabilities import (
    GaussianPrior,
    LogJoint,
    ThetaPredictive,
    TrainingStart,
    WarmStart,
)
from components.contracts.capabilities.densities import PredictiveLogJoint
from components.contracts.problems import Batch
from components.contracts.requirements import SUPERVISED
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_normal
from components.models.generalised.calibration import (
    MOST_PARAMETERS,
    curvature_adjustment,
    information,
    information_rate,
    magnitude_rate,
    minimise,
    spread,
)
from components.models.generalised.losses import LossName, SupervisedLoss
from components.problems.supervised import Supervised
from components.registry import register

Rate = Literal["magnitude", "information", "curvature"] | PositiveFloat


class GeneralisedModule(nn.Module):
    """log p(θ) and −w ℓ(θ + A(θ − θ̂), y) of a base model, A = 0 unless ``rate: curvature``."""

    gaussian_prior: Callable[[], Tensor | None]
    initial: Callable[[int, torch.Generator], Tensor]

    def __init__(self, base: PredictiveLogJoint, loss: SupervisedLoss, rate: float):
        super().__init__()
        self.base = base
        self.loss = loss
        self.rate = rate
        self.adjustment: tuple[Tensor, Tensor] | None = None  # θ̂ [P], C [P, P]
        self.start: tuple[Tensor, Tensor] | None = None  # θ̂ [P], a root of its covariance [P, P]
        self.dim = base.dim
        self.names = base.names
        self.constrain = base.constrain
        self.sample_prior = base.sample_prior
        self.log_prior = base.log_prior
        self.predictive = base.predictive
        if isinstance(base, GaussianPrior):
            self.gaussian_prior = base.gaussian_prior
        if isinstance(base, TrainingStart):
            self.initial = base.initial

    def potential(
        self, theta: Tensor, batch: Batch, loss: SupervisedLoss, width: float = 0.0
    ) -> Tensor:
        """−ℓ_b(θ) [K, B], summed over the tasks of a row."""
        y = torch.where(batch.mask, batch.y, 0)
        value = loss.potential(self.base.predictive(theta, batch.x), y, width)  # [K, B, T]
        return torch.where(batch.mask, value, 0.0).sum(-1)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        if self.adjustment is not None:
            centre, C = self.adjustment
            theta = centre + (theta - centre) @ C.mT
        return self.rate * self.potential(theta, batch, self.loss)

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Starts of chains [n, P]: θ̂ plus noise of twice its spread, because a bounded loss is
        flat far from the data; before the fit, the base model's starts."""
        if self.start is None:
            draw = self.base.sample_start if isinstance(self.base, WarmStart) else self.sample_prior
            return draw(n, generator)
        centre, root = self.start
        return centre + 2 * standard_normal((n, self.dim), generator, root) @ root.mT

    def fit(self, train: Batch, rate: Rate, generator: torch.Generator) -> None:
        """Find θ̂, the starts of chains, and the rate w or the adjusted curvature.

        θ̂ minimises Σ ℓ − log p(θ), starting from the minimum for the likelihood.  J and V exclude
        the prior, and in J kinks of the loss are replaced by parabolas of half-width N^−1/5.
        """
        width = len(train.x) ** -0.2
        begin = self.initial if isinstance(self, TrainingStart) else self.sample_start
        fixed = isinstance(self.base, WarmStart | TrainingStart)
        theta = begin(1, generator)[0] if fixed else train.x.new_zeros(self.dim)
        for loss in (SupervisedLoss("likelihood", 0.0), self.loss):
            theta = minimise(partial(self._objective, loss, train, width), theta)
        rows = partial(self._row_losses, train, width)
        self.start = theta, spread(rows, theta)
        if not isinstance(rate, str):
            return
        J, V = information(rows, theta)
        if rate == "curvature":
            self.adjustment = theta, curvature_adjustment(J, V)
        else:
            rule = magnitude_rate if rate == "magnitude" else information_rate
            self.rate = rule(J, V)

    def _row_losses(self, train: Batch, width: float, theta: Tensor) -> Tensor:
        return -self.potential(theta[None], train, self.loss, width)[0]

    def _objective(self, loss: SupervisedLoss, train: Batch, width: float, theta: Tensor) -> Tensor:
        fit = self.potential(theta[None], train, loss, width).sum()
        return -fit - self.log_prior(theta[None])[0]


@register("model", "generalised_bayes")
class GeneralisedBayes(Model[Supervised, GeneralisedModule]):
    """Generalised (Gibbs) posterior of another model: a loss replaces −log p(y | θ).

        p_g(θ | y) ∝ p(θ) exp(−w Σ_b ℓ(θ, y_b))

    ``base`` provides prior, parameters θ [K, P] and predictive; all samplers and variational
    methods for log joints apply.  ``loss``: likelihood (−log g, Bayes at w = 1), beta and gamma
    (divergences, whose β, γ → 0 is the likelihood), huber and absolute (of the residual in units of
    σ), and for classes hinge and absolute (Σ_c |1[y = c] − p_c|).  The scale of the loss is
    arbitrary: ``rate`` is w, or ``information`` (Lyddon et al.), which matches the trace of the
    posterior precision to that of θ̂ in repeated samples; ``magnitude`` matches the mean of its
    quadratic form, without inverting V; ``curvature`` matches the full covariance of θ̂ by an
    affine map of θ around θ̂ inside the loss.  These options compute θ̂ when the model is built.

    Raises:
        ConfigMismatchError: the loss does not support the labels, or the rows do not determine the
            rate.

    Source: Bissiri, Holmes and Walker (2016); Boustati (2021), section 2.6, eqs. (2.89)-(2.96);
    Lyddon, Holmes and Walker (2019); Ribatet, Cooley and Davison (2012).
    """

    requires = SUPERVISED
    offers_where = {
        GaussianPrior: "base=logistic_regression",
        TrainingStart: "base=logistic_regression",
    }

    base: Model
    loss: LossName
    beta: NonNegativeFloat
    gamma: NonNegativeFloat
    threshold: PositiveFloat
    rate: Rate

    @model_validator(mode="after")
    def _check_base(self) -> GeneralisedBayes:
        if not {LogJoint, ThetaPredictive} <= self.base.capabilities():
            raise ValueError(
                f"base: {self.base.name} lacks a log joint with a predictive; use "
                "linear_regression, logistic_regression, probit_regression, bnn or mlp"
            )
        return self

    def is_enabled(self, capability: type) -> bool:
        return capability in self.base.capabilities()

    def build(self, problem: Supervised, rng: Rng) -> GeneralisedModule:
        constants = {"beta": self.beta, "gamma": self.gamma, "huber": self.threshold}
        loss = SupervisedLoss(self.loss, constants.get(self.loss, 0.0))
        rate = 1.0 if isinstance(self.rate, str) else self.rate
        module = GeneralisedModule(self.base.build(problem, rng), loss, rate)
        if isinstance(self.rate, str) or module.dim <= MOST_PARAMETERS:
            module.fit(problem.train, self.rate, rng.init)
        return module
