"""Logistic regression for two or more classes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.capabilities import CoordinateAscent
from components.contracts.capabilities.margins import BoundsMargins, MarginBounds
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.exponential.standard_draws import standard_normal
from components.maths.intervals import Perturbations, margin_bounds, unit_roundoff
from components.models.linear.design import (
    check_one_task,
    design,
    name_columns,
    predictor,
    prior_scales,
    select_labelled,
)
from components.models.linear.labelled_rows import ManyClasses, TwoClasses
from components.models.linear.mean_field import LogisticAscent
from components.problems.supervised import Supervised
from components.registry import register


class LogisticRegressionModule(nn.Module, BoundsMargins):
    """Logistic regression with coefficients θ [K, P].

    θ holds the coefficients β of y = 1, or of every class in order, each with its intercept first.
    """

    scales: Tensor
    slopes: Tensor
    constant: Tensor
    heavy: Tensor

    def __init__(
        self, problem: Supervised, prior: str, scale: float, intercept_scale: float | None
    ):
        super().__init__()
        self.n_inputs = problem.n_inputs
        self.n_classes = problem.n_classes
        self.prior = prior
        self.intercept = intercept_scale is not None
        columns = name_columns(problem.n_inputs, self.intercept)
        self.n_rows = 1 if self.n_classes == 2 else self.n_classes  # coefficient vectors of one θ
        self.names = (
            columns
            if self.n_rows == 1
            else [f"{c}/{k}" for k in range(self.n_classes) for c in columns]
        )
        self.dim = len(self.names)
        scales = prior_scales(problem, scale, intercept_scale)
        self.register_buffer("scales", scales.repeat(self.n_rows))  # [P]
        heavy = [prior == "laplace" and c != "intercept" for c in columns] * self.n_rows
        # ∇ log p(θ)/θ of a Gaussian prior [P]
        self.register_buffer("slopes", -self.scales.pow(-2), persistent=False)
        self.register_buffer("heavy", torch.tensor(heavy, device=problem.train.x.device))  # [P]
        self.complete = bool(problem.train.mask.all())  # saves a pass over [K, B]
        constant = -float(self.scales.log().sum()) - sum(
            math.log(2 if h else math.sqrt(2 * math.pi)) for h in heavy
        )
        self.register_buffer("constant", self.scales.new_tensor([constant]), persistent=False)
        self.train_x, self.train_rows = problem.train.x, self.labelled_rows(problem.train)
        if isinstance(self.train_rows, TwoClasses):
            self.train_rows = replace(self.train_rows, columns=self.train_rows.columns.contiguous())

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def scores(self, theta: Tensor, x: Tensor) -> Tensor:
        """f [K, C', B] for θ [K, P] in one product, C' = 1 for two classes."""
        beta = theta.reshape(len(theta) * self.n_rows, -1)  # [K C', D]
        return predictor(beta, x, self.intercept).unflatten(0, (len(theta), self.n_rows))

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        f = self.scores(theta, batch.x)
        label = batch.y[:, 0]
        if self.n_rows == 1:
            sign = (2 * label - 1).to(f.dtype)  # ±1
            value = F.logsigmoid(f[:, 0] * sign)  # [K, B]
        else:
            rows = label.clamp(0, self.n_classes - 1).expand(len(f), 1, -1)
            value = f.gather(1, rows)[:, 0] - f.logsumexp(1)
        return value if self.complete else torch.where(batch.mask[:, 0], value, 0.0)

    def log_prior(self, theta: Tensor) -> Tensor:
        if self.prior == "gaussian":
            return torch.addmv(self.constant, theta.square(), self.slopes, alpha=0.5)
        z = theta / self.scales
        return torch.where(self.heavy, -z.abs(), -0.5 * z.square()).sum(1) + self.constant

    def gaussian_prior(self) -> Tensor | None:
        return self.scales if self.prior == "gaussian" else None

    def labelled_rows(self, batch: Batch) -> TwoClasses | ManyClasses:
        X = design(batch.x, self.intercept)
        label = batch.y[:, 0]
        is_labelled = batch.mask[:, 0]
        X = X if self.complete else X * is_labelled.unsqueeze(1)
        if self.n_rows == 1:
            signed = X * (2 * label - 1).to(X.dtype).unsqueeze(1)
            return TwoClasses(signed, signed.T, 0 if self.complete else int((~is_labelled).sum()))
        labels = label.clamp(0, self.n_classes - 1)
        return ManyClasses(X, labels, None if self.complete else is_labelled, self.n_classes)

    def score(self, theta: Tensor, batch: Batch, value: bool) -> tuple[Tensor, Tensor]:
        """The log joint [K], empty without ``value``, and its gradient [K, P] in closed form: scale
        Σ_b (1[y_b = c] − p(c | x_b)) x_b + ∇log p(θ)."""
        prior = theta * self.slopes
        prior = (
            torch.where(self.heavy, -theta.sign() / self.scales, prior)
            if self.prior == "laplace"
            else prior
        )
        rows = self.train_rows if batch.x is self.train_x else self.labelled_rows(batch)
        likelihood, gradient = rows.score(theta, prior, batch.scale, value)
        return torch.add(
            self.log_prior(theta), likelihood, alpha=batch.scale
        ) if value else likelihood, gradient

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        def normal() -> Tensor:
            return standard_normal((n, self.dim), generator, self.scales)

        z = normal()
        # √(2E) Z with E ~ Exp(1), half the squared norm of a bivariate normal
        if self.prior == "laplace":
            z = torch.where(self.heavy, (normal().square() + normal().square()).sqrt() * z, z)
        return self.scales * z

    def initial(self, n: int, generator: torch.Generator) -> Tensor:
        """θ = 0 [n, P], the start of gradient descent, with equally likely classes."""
        return self.scales.new_zeros(n, self.dim)

    def select(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return select_labelled(batch, self.intercept)

    def mean_field(self) -> LogisticAscent:
        """q(β) for two classes under Jaakkola and Jordan's bound.

        Raises ConfigMismatchError for more classes."""
        if self.n_rows > 1:
            raise ConfigMismatchError(
                "inference=cavi: the bound of model=logistic_regression supports two classes, not "
                f"{self.n_classes}; use inference=gaussian_vi"
            )
        return LogisticAscent(self.select, self.scales)

    def margin_bounds(
        self, parameters: Tensor | None, y: Tensor, inputs: Perturbations
    ) -> MarginBounds:
        """Lower bounds of f_y − f_c for coefficients θ [K, P], exact up to rounding.

        Raises:
            TypeError: no coefficients are given; the module does not store any.
        """
        if parameters is None:
            raise TypeError("a logistic regression does not store coefficients")
        beta = parameters.double().unflatten(1, (self.n_rows, -1))  # [K, C', D or 1 + D]
        if self.n_rows == 1:
            beta = torch.cat([torch.zeros_like(beta), beta], 1)
        first = int(self.intercept)
        bias = beta[..., 0] if self.intercept else torch.zeros_like(beta[..., 0])
        unit = unit_roundoff(parameters.dtype)
        weight = beta[..., first:]
        return MarginBounds(*margin_bounds(weight, bias, inputs, y, self.n_classes, unit), unit)

    def predictive(self, theta: Tensor, x: Tensor) -> Categorical:
        """Mixture over θ [K, P] of the class probabilities at x [B, D]."""
        f = self.scores(theta, x)
        f = torch.cat([torch.zeros_like(f), f], 1) if self.n_rows == 1 else f  # [K, C, B]
        return Categorical(f.transpose(1, 2).unsqueeze(2))  # [K, B, 1, C]


@register("model", "logistic_regression")
class LogisticRegression(Model[Supervised, LogisticRegressionModule]):
    """Bayesian logistic regression for binary labels, and its softmax form for more classes.

    p(y = 1 | x) = 1/(1 + exp(−β_0 − xᵀβ)); with C > 2 classes
    p(y = c | x) ∝ exp(β_0c + xᵀβ_c), with separate coefficients for every class, identified only by
    the prior. β_j ~ N(0, s²), or Laplace with density exp(−|β|/s)/2s; β_0 ~ N(0, s_0²).

    With a Gaussian prior and two classes, mean field is available by Jaakkola and Jordan's bound.

    Raises ConfigMismatchError for a dataset of several tasks.

    Source: Murphy (2012), sections 8.2 and 8.3.7; Jaakkola and Jordan (2000).
    """

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary", "classes"},
        refused_traits={"several_tasks": "has one output"},
    )
    offers_where = {CoordinateAscent: "prior=gaussian"}

    prior: Literal["gaussian", "laplace"]
    prior_scale: PositiveFloat
    intercept_scale: PositiveFloat | None

    def is_enabled(self, capability: type) -> bool:
        return self.prior == "gaussian"

    def build(self, problem: Supervised, rng: Rng) -> LogisticRegressionModule:
        check_one_task(problem, self.name)
        return LogisticRegressionModule(problem, self.prior, self.prior_scale, self.intercept_scale)
