"""Naive Bayes for binary inputs."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.capabilities.estimators import Fitted
from components.contracts.capabilities.margins import BoundsMargins, MarginBounds
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.intervals import Perturbations, margin_bounds, unit_roundoff
from components.models.linear.design import check_one_task
from components.problems.supervised import Supervised
from components.registry import register


class BernoulliNaiveBayes(nn.Module, BoundsMargins):
    """p(x, y) = p(y) Π_i p(x_i|y), stored as log-probabilities, so all results are sums."""

    def __init__(self, problem: Supervised, smoothing: float):
        super().__init__()
        self.n_classes = problem.n_classes
        self.smoothing = smoothing

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """θ_ci = (n_ci + α)/(n_c + 2α) and π_c = (n_c + α)/(N + αC), n_ci the number of emails of
        class c with x_i = 1.

        Raises:
            ConfigMismatchError: an input is neither 0 nor 1.
        """
        is_labelled = batch.mask[:, 0]
        x = batch.x[is_labelled]
        y = batch.y[is_labelled, 0]
        if not ((x == 0) | (x == 1)).all():
            raise ConfigMismatchError(
                "model=naive_bayes: inputs must be 0 or 1; choose a dataset with binary inputs"
            )
        member = F.one_hot(y, self.n_classes).to(x)  # [N, C]
        n = member.sum(0)
        a = self.smoothing
        theta = (member.T @ x + a) / (n + 2 * a)[:, None]  # [C, D]
        return {
            "log_present": theta.log(),  # log p(x_i = 1|c) [C, D]
            "log_absent": (-theta).log1p(),  # log p(x_i = 0|c) [C, D]
            "log_class": ((n + a) / (n.sum() + a * self.n_classes)).log(),  # log p(c) [C]
        }

    def log_class(self, fitted: Fitted) -> Tensor:
        """log p(y) [C]."""
        return fitted["log_class"]

    def log_features(self, fitted: Fitted, x: Tensor) -> Tensor:
        """log p(x_i|y) of every input of x [B, D], [B, C, D]."""
        return torch.where(x[:, None] > 0.5, fitted["log_present"], fitted["log_absent"])

    def log_conditional(self, fitted: Fitted, x: Tensor) -> Tensor:
        """log p(x|y) of x [B, D] in {0, 1}, linear in x so that it can be differentiated, [B,
        C]."""
        return x @ (fitted["log_present"] - fitted["log_absent"]).T + fitted["log_absent"].sum(1)

    def margin_bounds(self, parameters: Fitted, y: Tensor, inputs: Perturbations) -> MarginBounds:
        """Lower bounds of log p(x, y) − log p(x, c), which is linear in x: exact up to rounding."""
        weight = (parameters["log_present"] - parameters["log_absent"]).double()[None]
        bias = (parameters["log_class"] + parameters["log_absent"].sum(1)).double()[None]
        unit = unit_roundoff(parameters["log_present"].dtype)
        return MarginBounds(*margin_bounds(weight, bias, inputs, y, self.n_classes, unit), unit)

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> Categorical:
        """p(y|x) ∝ p(y) p(x|y)."""
        return Categorical((fitted["log_class"] + self.log_conditional(fitted, x))[None, :, None])


@register("model", "naive_bayes")
class NaiveBayes(Model[Supervised, BernoulliNaiveBayes]):
    """Naive Bayes: inputs are independent Bernoulli variables given the class, with
    Laplace-smoothed frequencies.

    p(y|x) ∝ p(y) Π_i p(x_i|y),  p(x_i = 1|y = c) = (n_ci + α)/(n_c + 2α),  p(y = c) = (n_c + α)/(N
    + αC).  A generative classifier: it provides p(x_i|y) and p(y), as required by attacks and
    defences that reason about x.  x in {0, 1}.

    Raises ConfigMismatchError for inputs that are not 0 or 1, or several tasks.

    Source: Murphy (2012), section 3.5; Gallego (2021), section 3.2.1."""

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary", "classes"},
        refused_traits={"several_tasks": "has one output"},
        required_traits={"binary_inputs": "counts inputs that are 0 or 1"},
    )

    smoothing: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> BernoulliNaiveBayes:
        check_one_task(problem, self.name)
        return BernoulliNaiveBayes(problem, self.smoothing)
