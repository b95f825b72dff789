"""Logistic regression with an L1 penalty."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities.estimators import Fitted
from components.contracts.capabilities.margins import BoundsMargins, MarginBounds
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.requirements import ONE_BINARY_LABEL
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.intervals import Perturbations, margin_bounds, unit_roundoff
from components.models.linear.design import check_one_task
from components.problems.supervised import Supervised
from components.registry import register

TOLERANCE = 1e-6
MOST_PASSES = 5_000  # of the coordinate descent


class LogisticLassoModule(nn.Module, BoundsMargins):
    """β̂ of one fit; predictions are differentiable in x."""

    def __init__(self, scale: float, intercept_scale: float):
        super().__init__()
        self.scale = scale
        self.intercept_scale = intercept_scale

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """The mode by coordinate descent (liblinear), which penalises the intercept like this
        prior.

        Raises:
            ConfigMismatchError: the training labels are all equal.
        """
        from sklearn.linear_model import LogisticRegression as Solver  # slow to import

        is_labelled = batch.mask[:, 0]
        x = batch.x[is_labelled].detach().cpu().numpy()
        y = batch.y[is_labelled, 0].cpu().numpy()
        if len(set(y.tolist())) < 2:
            raise ConfigMismatchError(
                "model=logistic_lasso: the training labels are all equal; raise dataset.n_train"
            )
        solver = Solver(
            l1_ratio=1.0,
            C=self.scale,
            solver="liblinear",
            intercept_scaling=self.intercept_scale / self.scale,
            tol=TOLERANCE,
            max_iter=MOST_PASSES,
            random_state=seed,
        ).fit(x, y)
        return {
            "coefficients": torch.from_numpy(solver.coef_[0]).to(batch.x),  # [D]
            "intercept": torch.from_numpy(solver.intercept_[0:1]).to(batch.x)[0],  # []
        }

    def margin_bounds(self, parameters: Fitted, y: Tensor, inputs: Perturbations) -> MarginBounds:
        """Lower bounds of ±f(x), which is linear in x: exact up to rounding."""
        slope = parameters["coefficients"].double()
        level = parameters["intercept"].double()
        weight = torch.stack([torch.zeros_like(slope), slope])[None]  # [1, 2, D]
        bias = torch.stack([torch.zeros_like(level), level])[None]
        unit = unit_roundoff(parameters["coefficients"].dtype)
        return MarginBounds(*margin_bounds(weight, bias, inputs, y, 2, unit), unit)

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> Categorical:
        """p(y = 1|x) = σ(β_0 + xᵀβ)."""
        f = x @ fitted["coefficients"] + fitted["intercept"]
        return Categorical(torch.stack([torch.zeros_like(f), f], -1)[None, :, None])


@register("model", "logistic_lasso")
class LogisticLasso(Model[Supervised, LogisticLassoModule]):
    """Logistic regression with L1 regularisation: the posterior mode under a Laplace prior.

    β̂ = argmin Σ_n log(1 + exp(−±f(x_n))) + Σ_j |β_j|/s + |β_0|/s_0,  f(x) = β_0 + xᵀβ,
    ± the sign of the label. The posterior is that of model=logistic_regression with prior=laplace,
    except for the intercept's prior; the mode is found directly.

    Raises ConfigMismatchError for several tasks, or labels of one class.

    Source: Tibshirani (1996); Park and Casella (2008); Gallego (2021), section 3.2.2.
    """

    requires = ONE_BINARY_LABEL

    prior_scale: PositiveFloat
    intercept_scale: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> LogisticLassoModule:
        check_one_task(problem, self.name)
        return LogisticLassoModule(self.prior_scale, self.intercept_scale)
