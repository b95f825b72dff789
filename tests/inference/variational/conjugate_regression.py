"""A linear regression with a known posterior, and q(θ) = N(m, L Lᵀ) for it."""

from __future__ import annotations

import math
from functools import partial

import torch
from support.runs.configured import component, compose_component, generator, normal
from support.small.small_problems import real
from support.targets.known_targets import F64
from torch.distributions import MultivariateNormal, kl_divergence

from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.global_gaussian import GlobalGaussian
from components.models.linear.linear_regression import LinearRegressionModule
from runner.execution.rng import Streams

LINEAR = component("model", "linear_regression", noise=0.25, prior_scale=1.2, intercept_scale=3.0)


gaussian_vi = partial(compose_component, "inference", "gaussian_vi")


def regression(batch_size=None):
    """24 rows, three inputs and an intercept; the posterior is correlated."""
    problem = real(n=24, n_tasks=1, missing=0.0, batch_size=batch_size)
    problem.train.x[:, 1] += 0.9 * problem.train.x[:, 0]
    return problem, LINEAR.build(problem, Streams(0))


class OfUnknownPrior:
    """The same log joint without the declaration that its prior is Gaussian."""

    def __init__(self, model: LinearRegressionModule):
        self.dim = model.dim
        self.names = model.names
        self.constrain = model.constrain
        self.sample_prior = model.sample_prior
        self.log_prior = model.log_prior
        self.log_likelihood = model.log_likelihood


def make_q(model, full=True, noise="shared"):
    g = generator(1)
    target = RowwiseLogJoint(model)
    mean = 0.3 * normal(g, model.dim)
    q = GlobalGaussian(target, mean, 0.4, full, noise)
    with torch.no_grad():
        q.log_std += 0.2 * normal(g, model.dim)
        if q.lower is not None:
            q.lower += 0.2 * normal(g, len(q.lower))
    return q


def posterior(model, problem):
    coefficients = model.coefficients(problem.train)
    return coefficients.m, model.noise * coefficients.covariance


def law_of(q):
    return MultivariateNormal(q.mean, q.covariance)


def divergence(q, model):
    """KL(q ‖ p) from the prior."""
    precision = model.penalty.diag() / model.noise
    return kl_divergence(
        law_of(q), MultivariateNormal(torch.zeros_like(q.mean), precision_matrix=precision)
    )


def exact_bound(q, model, problem):
    """E_q log p(y | θ) − KL(q ‖ p) in closed form, with formulas independent of the module."""
    X = torch.cat([torch.ones(problem.n, 1, dtype=F64), problem.train.x], 1)
    residual = problem.train.y[:, 0] - X @ q.mean
    square = residual.square().sum() + (X @ q.covariance * X).sum()
    fit = -0.5 * square / model.noise - 0.5 * problem.n * math.log(2 * math.pi * model.noise)
    return fit - divergence(q, model)
