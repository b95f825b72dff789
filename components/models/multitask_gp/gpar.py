"""Gaussian process autoregressive regression: each task given the inputs and earlier tasks."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities.estimators import Fitted
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.exponential.standard_draws import standard_normal
from components.maths.kernels import Shape
from components.maths.line_search.limited_memory import Evaluation, Tolerance, init_lbfgs, iterate
from components.maths.line_search.module_bound import evaluate_bound, flatten
from components.models.deep_gp.likelihoods import GaussianLabels
from components.models.multitask_gp.covariance import ColumnCovariance, SummedCovariance
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.labels import Labels
from components.models.shallow_gp.mean_function import MeanFunction
from components.models.shallow_gp.prior import GPParts, IndependentCovariance
from components.problems.supervised import Supervised
from components.registry import register

MEMORY = 20  # history size of L-BFGS
MAX_EVALUATIONS = 20  # per line search
TOLERANCE = Tolerance(value=1e-9, gradient=1e-4)


def maximise(gp: ExactGP, batch: Batch, iterations: int) -> None:
    """Maximise the bound of a process by at most ``iterations`` iterations of L-BFGS."""
    parameters = list(gp.parameters())
    run = init_lbfgs(flatten(parameters))

    def evaluate(theta: Tensor) -> Evaluation:
        return evaluate_bound(parameters, theta, lambda: gp.elbo(batch, None))

    while not run.converged and run.iteration < iterations:
        iterate(run, evaluate, MEMORY, TOLERANCE, MAX_EVALUATIONS)
    evaluate_bound(parameters, run.theta, lambda: gp.elbo(batch, None))


def predict_task(gp: ExactGP, features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [n] of the labels of a task at features [n, D + t]."""
    predictive = gp.sample_predictive(features, 1, torch.Generator())
    assert isinstance(predictive, GaussianMixture)  # Gaussian likelihood
    return predictive.mean[:, 0], predictive.variance[:, 0]


class Autoregression:
    """The conditionals of a problem's tasks, learnt in order by ``fit``."""

    def __init__(self, settings: GPAR, order: list[int]):
        self.settings = settings
        self.order = order
        self._rebuilt: tuple[Fitted, list[ExactGP]] | None = None

    def conditional(self, features: Tensor, y: Tensor, n_inputs: int) -> ExactGP:
        """p(y_t | x, y of earlier tasks), untrained: features [n, D + t], y [n]."""
        s = self.settings
        inputs = features[:, :n_inputs]
        earlier = features[:, n_inputs:]
        kernels = [IndependentCovariance(s.kernel, "own", s.lengthscale, s.variance, 1, inputs)]
        shapes: dict[str, list[Shape]] = {
            "linear": ["linear"],
            "nonlinear": [s.kernel],
            "both": ["linear", s.kernel],
        }
        if earlier.shape[1]:
            kernels += [
                IndependentCovariance(
                    shape, "own", s.output_lengthscale, s.output_variance, 1, earlier
                )
                for shape in shapes[s.outputs]
            ]
        columns = [slice(0, n_inputs)] + [slice(n_inputs, None)] * (len(kernels) - 1)
        parts = GPParts(
            mean=MeanFunction("zero", 1, features),
            covariance=SummedCovariance(
                [ColumnCovariance(k, part) for k, part in zip(kernels, columns, strict=True)]
            ),
            likelihood=GaussianLabels(1, s.noise_variance, features),
            noise_variance=s.noise_variance,
            hyperprior=s.hyperprior,
            jitter=s.jitter,
        )
        task = torch.zeros_like(y, dtype=torch.long)
        return ExactGP(parts, Labels(features[None], y[None], task[None], task[None] == 0))

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """Hyper-parameters and labels of each task in order, with earlier tasks fixed."""
        x = batch.x
        features = x
        out = {"seed": torch.tensor(seed), "inputs": torch.tensor(x.shape[1])}
        for place, task in enumerate(self.order):
            rows = batch.mask[:, task]
            gp = self.conditional(features[rows], batch.y[rows, task], x.shape[1])
            maximise(gp, batch, self.settings.iterations)
            out |= {f"{place} {name}": value.clone() for name, value in gp.state_dict().items()}
            out |= {f"{place} x": gp.labels.x[0], f"{place} y": gp.labels.y[0]}
            with torch.no_grad():
                column, _ = predict_task(gp, features)
            if not self.settings.replace:
                column = torch.where(rows, batch.y[:, task], column)
            features = torch.cat([features, column[:, None]], 1)
        return out

    def conditionals(self, fitted: Fitted) -> list[ExactGP]:
        """The processes learnt by ``fit``, in the order of the tasks."""
        if self._rebuilt is None or self._rebuilt[0] is not fitted:
            processes = []
            for place in range(len(self.order)):
                x = fitted[f"{place} x"]
                gp = self.conditional(x, fitted[f"{place} y"], int(fitted["inputs"]))
                gp.load_state_dict({name: fitted[f"{place} {name}"] for name in gp.state_dict()})
                processes.append(gp)
            self._rebuilt = fitted, processes
        return self._rebuilt[1]

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> GaussianMixture:
        """p(y*|x*) as a mixture over ``samples`` draws of the earlier tasks, at x [B, D].

        With ``replace`` the draws are noise-free draws of f, like the inputs of the fit.
        """
        S = self.settings.samples
        generator = torch.Generator().manual_seed(int(fitted["seed"]))
        features = x.expand(S, *x.shape)  # [S, B, D + t]
        mean = x.new_empty(S, len(x), len(self.order))
        variance = torch.empty_like(mean)
        for gp, task in zip(self.conditionals(fitted), self.order, strict=True):
            mu, v = (part.view(S, -1) for part in predict_task(gp, features.flatten(0, 1)))
            mean[..., task] = mu
            variance[..., task] = v
            spread = v - gp.likelihood.noise_variance if self.settings.replace else v
            eps = standard_normal((S, len(x)), generator, x)
            draw = mu + spread.clamp_min(0).sqrt() * eps
            features = torch.cat([features, draw[..., None]], -1)
        return GaussianMixture(mean, variance)


@register("model", "gpar")
class GPAR(Model[Supervised, Autoregression]):
    """Gaussian process autoregressive regression (GPAR): ordered tasks, each a Gaussian process of
    the inputs and earlier tasks.

        y_t(x) = f_t(x, y_1(x) … y_{t−1}(x)) + N(0, σ_t²),   f_t ~ GP(0, k_t),
        k_t = σ² κ(x, x') + k'(y_<t, y'_<t)

    Both kernels have a lengthscale per input; k' is linear (GPAR-L), nonlinear (GPAR-NL) or their
    sum.  log p(y) = Σ_t log p(y_t | x, y_<t) if rows with a label of a task also have labels of all
    earlier tasks; other labels are imputed by the posterior mean of their process.  Tasks are
    learnt in order with earlier ones fixed, each by L-BFGS on its log marginal likelihood plus
    ``hyperprior`` (as in igp).  Predictions are mixtures over draws of the earlier tasks.

    Source: Requeima, Tebbutt, Bruinsma and Turner (2019), eqs. (2) to (4) and section 3; Boustati
    (2021), section 3.4."""

    requires = Requirements(kinds={"supervised"}, targets={"real"})

    kernel: Shape
    lengthscale: PositiveFloat
    variance: PositiveFloat
    outputs: Literal["linear", "nonlinear", "both"]
    output_lengthscale: PositiveFloat
    output_variance: PositiveFloat
    order: list[int] | None
    replace: bool
    noise_variance: PositiveFloat
    hyperprior: PositiveFloat | None
    iterations: PositiveInt
    samples: PositiveInt
    jitter: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> Autoregression:
        """Build the conditionals of the tasks, without fitting them.

        Raises:
            ConfigMismatchError: ``order`` does not contain every task once.
        """
        T = problem.n_tasks
        order = list(range(1, T + 1)) if self.order is None else self.order
        if sorted(order) != list(range(1, T + 1)):
            raise ConfigMismatchError(
                f"model.order={order}: must list each of the tasks 1 to {T} of {problem.name} once"
            )
        return Autoregression(self, [task - 1 for task in order])
