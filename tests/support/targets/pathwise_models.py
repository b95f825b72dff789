"""Small models for pathwise gradients: a location with noise per row, and Gaussian posteriors of
regressions with their gradients by quadrature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from support.runs.configured import (
    F64,
    build_model,
    component,
    double,
    draw_normal,
    generator,
    normal,
)
from support.small.small_problems import classes, real
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from torch import nn
from torch.autograd import functional, grad

from components.contracts.problems import Rows
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.global_gaussian import GlobalGaussian
from runner.execution.rng import Streams

OBJECTIVES = ["squared_difference", "gradient_sum", "partial_gradients"]


class Location(nn.Module):
    """z_b = a + eˢ ε_b with one a, s [2] for all rows, ℓ_b = −½ |z_b − x_b|² + |z_b|⁴ · bend.

    Without bend the gradient in a is linear in the noise, and that in s quadratic.
    """

    def __init__(self, bend: float = 0.0):
        super().__init__()
        self.a = nn.Parameter(double([0.3, -0.8]))
        self.s = nn.Parameter(double([-0.5, 0.2]))
        self.bend = bend
        self.noise_dim = 2
        self.context_dim = 2

    def draw_noise(self, batch, n_samples, g):
        return normal(g, n_samples, batch.n_rows, 2)

    def elbo_rows(self, batch, noise):
        z = self.a + self.s.exp() * noise
        square = (z - batch.x).square().sum(-1)
        return -0.5 * square - self.bend * square * square

    def kl(self):
        return 0.5 * self.a.square().sum()

    def context(self, batch):
        return batch.x

    def row_gradients(self, x, noise):
        """Gradients ĝ_b [S, B, P] of each row, if ``bend`` is 0."""
        scale = self.s.detach().exp()
        pull = x - self.a.detach() - scale * noise
        return torch.cat([pull, pull * scale * noise], -1)

    def exact(self, x):
        """Gradient of the bound of all rows, if ``bend`` is 0."""
        return torch.cat([(x - self.a).sum(0) - self.a, -len(x) * (2 * self.s).exp()]).detach()


def rows(n=5, scale=1.0, seed=3):
    return Rows(draw_normal(n, 2, seed=seed), scale)


def z_score(draws, exact=0.0):
    """Largest |mean − exact| in standard errors."""
    error = draws.std(0) / len(draws) ** 0.5 + 1e-9  # some have no remaining noise
    return float(((draws.mean(0) - exact) / error).abs().max())


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients])


def gradient(name, **changes):
    return component(
        "gradient", name, **(({"widths": [8]} if name == "amortised_cv" else {}) | changes)
    )


def train_estimator(estimator, module, batch, steps, seed=0):
    """State after a number of estimates, the streams, and the estimates."""
    rng = Streams(seed)
    state = estimator.init(module, rng)
    results = []
    for _ in range(steps):
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        results.append(flat(gradients))
    return state, rng, torch.stack(results)


def share_noise(module):
    """Give all five rows the same noise."""
    module.draw_noise = lambda batch, n, g: normal(g, n, 1, 2).expand(-1, 5, -1)
    return module


def estimates(estimator, module, batch, steps):
    """Estimates for a fixed module, while the estimator learns."""
    return train_estimator(estimator, module, batch, steps, seed=1)[2]


def spread_out(q, seed=0):
    """Set the mean, scales and correlations of q to distinct values."""
    g = generator(seed)
    with torch.no_grad():
        for p in q.parameters():
            p.add_(0.4 * normal(g, p.shape))
    return q


def logistic(noise="rows", full=True, n=6, n_inputs=1):
    """Two classes, θ = (β_0, β_1): f_b = log σ(± x_bᵀ θ)."""
    problem = classes(n=n, n_inputs=n_inputs, n_classes=2)
    model = build_model("logistic_regression", problem, intercept_scale=1.0)
    q = GlobalGaussian(
        RowwiseLogJoint(model, n_inputs + 1, n),
        torch.zeros(n_inputs + 1, dtype=F64),
        0.8,
        full,
        noise,
    )
    return problem, spread_out(q)


def regression(noise="rows", full=True):
    """Linear regression: f_b is quadratic in θ."""
    problem = real(n=8, n_inputs=2, n_tasks=1, missing=0.0)
    model = build_model("linear_regression", problem, noise=0.25)
    q = GlobalGaussian(
        RowwiseLogJoint(model, 3, 8), torch.zeros(model.dim, dtype=F64), 0.5, full, noise
    )
    return problem, spread_out(q, 1)


def nodes(dimensions, points=12):
    """Gauss-Hermite points ε [K, D] and weights [K]: exact for polynomials up to degree 2·points −
    1."""
    abscissae, weight = (torch.tensor(v) for v in np.polynomial.hermite_e.hermegauss(points))
    grid = torch.cartesian_prod(*[abscissae] * dimensions).reshape(-1, dimensions)
    products = (
        torch.cartesian_prod(*[weight / weight.sum()] * dimensions).reshape(-1, dimensions).prod(1)
    )
    return grid, products


def exact(q, batch, points=40):
    """∇ of the bound of the batch's rows, each weighted by N/B, by quadrature over ε."""
    abscissae, weight = nodes(q.noise_dim, points)
    theta = q.transform(abscissae)[:, None]
    value = batch.scale * (q.target.log_likelihood(theta, batch) * weight[:, None]).sum() - q.kl()
    return flat(grad(value, list(q.parameters())))


def pick_batch(problem, rows=(4, 1, 2)):
    selection = torch.tensor(rows)
    return replace(problem.train.part(selection, problem.n / len(rows)), numbers=selection)


def expand_row(q, batch, row, around):
    """Slope [D] and Hessian [D, D] of f of one row, by torch."""
    part = batch.part(torch.tensor([row]), 1.0)

    def f(t):
        return q.rows_at(part, t[None, None])[0, 0]

    return functional.jacobian(f, around), functional.hessian(f, around)


def estimate(estimator, q, batch, seed=0, state=None):
    gradients, _, _ = estimator.estimate(q, batch, Streams(seed), state)
    return flat(gradients)


def gaussian_models():
    module = Location()
    batch = rows()
    problem = real_rows(n=12)
    guided = ppca(problem, exact_guide=False)
    guided_exact = flat(grad(exact_elbo(guided, problem.train.x), list(guided.parameters())))
    return [(module, module.exact(batch.x), batch), (guided, guided_exact, problem.train)]
