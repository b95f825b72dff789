"""igp with a sparse posterior: initial inducing inputs, and classes by sampling."""

import math

import numpy as np
import pytest
import torch
from support.runs.configured import build_model, generator
from support.small.shallow_gp_problems import (
    F64,
    PLAIN,
    problem,
    scatter_parameters,
)

from components.models.shallow_gp.labels import group_by_task


def sparse(p, **changes):
    return build_model("igp", p, **PLAIN, posterior="sparse", **changes)


@pytest.mark.parametrize("initial", ["rows", "kmeans"])
def test_inducing_inputs_prefer_the_tasks_own_rows(initial):
    p = problem(n=30, keep=0.5)
    module = sparse(p, n_inducing=8, inducing=initial)
    assert module.inducing.shape == (3, 8, 4)
    if initial == "rows":
        for t in range(3):
            inputs = p.train.x[p.train.mask[:, t]]
            assert all((inputs == z).all(1).any() for z in module.inducing[t])
    assert sparse(p, n_inducing=100).inducing.shape == (3, 30, 4)


def test_sampled_probabilities_of_two_classes_match_quadrature():
    # log softmax(f)_y = log σ(f_y − f_other), whose expectation is a one-dimensional quadrature.
    p = problem("binary")
    p.target = "classes"  # type: ignore[assignment]
    module = sparse(p, n_inducing=6)
    scatter_parameters(module, scale=0.3)
    labels = group_by_task(p.train)
    with torch.no_grad():
        mean, variance, _ = module.marginals(labels.x, labels.task)
    nodes, weights = np.polynomial.hermite.hermgauss(50)
    sign = 2 * labels.y.to(F64) - 1
    gap_mean = sign * (mean[0, ..., 1] - mean[0, ..., 0])
    gap_sd = variance[0].sum(-1).sqrt()
    f = gap_mean[..., None] + gap_sd[..., None] * torch.as_tensor(nodes * math.sqrt(2))
    by_row = torch.nn.functional.logsigmoid(f) @ torch.as_tensor(weights / math.sqrt(math.pi))
    exactly = float((by_row * labels.mask).sum())
    g = generator(3)
    with torch.no_grad():
        noises = (module.draw_noise(p.train, 4, g) for _ in range(400))
        draws = torch.stack([module.elbo(p.train, e)["log_likelihood"] for e in noises])
    z = (float(draws.mean()) - exactly) / float(draws.std() / 20)
    assert abs(z) < 3.5
    # A bound that is not divided by the number of samples must fail.
    assert abs(4 * float(draws.mean()) - exactly) / float(4 * draws.std() / 20) > 10
