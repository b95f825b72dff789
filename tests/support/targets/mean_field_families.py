"""Models with a mean field on a few rows of data, and their literal bounds."""

from __future__ import annotations

import torch
from support.runs.configured import F64, build_model, generator, normal

from components.contracts.problems import Batch, Rows
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

GRID = 401


def rows(n=5, D=1, seed=0) -> Unlabelled:
    g = generator(seed)
    x = 0.5 + 1.3 * normal(g, 2 * n, D)
    return Unlabelled("few", "real", Rows(x[:n], 1.0), Rows(x[n:], 1.0), None)


def labels(n=8, D=1, binary=True, seed=0) -> Supervised:
    """Problem with one missing label."""
    g = generator(seed)
    x = normal(g, 2 * n, D)
    f = x.sum(1, keepdim=True) + 0.7 * normal(g, 2 * n, 1)
    y = (f > 0).long() if binary else f
    mask = torch.ones(2 * n, 1, dtype=torch.bool)
    mask[2] = False
    train, test = (Batch(x[part], y[part], mask[part], 1.0) for part in (slice(n), slice(n, None)))
    return Supervised(
        "few",
        "binary" if binary else "real",
        train,
        test,
        None,
        n_classes=2 if binary else 1,
        task_names=["y"],
    )


def two_parameters() -> dict:
    """Models with two coordinates of θ, and a problem for each, so that q(θ) can be integrated on a
    grid."""
    problems = {
        "normal_gamma": (rows(), {}),
        "linear_regression": (labels(binary=False), {"intercept_scale": None, "noise": "learned"}),
        "logistic_regression": (labels(), {"intercept_scale": 2.0}),
        "probit_regression": (labels(), {"intercept_scale": 2.0}),
    }
    return {
        name: (build_model(name, problem, **changes), problem)
        for name, (problem, changes) in problems.items()
    }


def fit_factors(ascent, batch, cycles=200, starts=1, seed=0):
    factors = ascent.start(batch, starts, generator(seed))
    for _ in range(cycles):
        factors = ascent.cycle(factors, batch)
    return factors


def grid(ascent, factors, reach=9.0):
    """Points [n, 2], and the area of each, up to a number of standard deviations of q."""
    draws = ascent.draw(factors, 4000, generator(0))
    centre = draws.mean(0)
    sd = draws.std(0)
    sides = [
        torch.linspace(float(c - reach * s), float(c + reach * s), GRID, dtype=F64)
        for c, s in zip(centre, sd, strict=True)
    ]
    return torch.cartesian_prod(*sides), float(
        torch.stack([side[1] - side[0] for side in sides]).prod()
    )


def log_joint(model, theta, batch):
    return model.log_prior(theta) + model.log_likelihood(theta, batch).sum(1)


def check_draws(ascent, factors, mean) -> None:
    """Assert that draws of q have its exact mean."""
    draws = ascent.draw(factors, 20_000, generator(1))
    assert ((draws.mean(0) - mean).abs() < 5 * draws.std(0) / 20_000**0.5).all()
