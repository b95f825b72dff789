"""Titsias' collapsed bound, compared with its formula, with the variational bound at the optimal q,
and with the exact evidence."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import build_model, component
from support.small.shallow_gp_problems import (
    F64,
    elbo_of,
    gradient_error,
    problem,
    scatter_parameters,
    set_optimal_q,
    streams,
)
from torch.testing import assert_close

from components.contracts.capabilities import VariationalLayers
from components.errors import ConfigMismatchError
from components.models.shallow_gp.labels import group_by_task
from components.problems.supervised import Supervised

SPARSE = {"posterior": "sparse", "n_inducing": 6, "hyperprior": None, "lengthscale": 2.0}


def modules(name, mean="linear", **keys):
    """The collapsed and the variational module with the same parameters, and their problem."""
    data = problem()
    settings = SPARSE | {"mean": mean} | keys
    collapsed = build_model(name, data, bound="collapsed", **settings)
    variational = build_model(name, data, **settings)
    scatter_parameters(collapsed)
    variational.load_state_dict(collapsed.state_dict())
    return data, collapsed, variational


@pytest.mark.parametrize("name", ["igp", "cgp"])
def test_bound_equals_the_variational_one_at_the_optimal_q(name):
    data, collapsed, variational = modules(name)
    terms = collapsed.elbo(data.train, None)
    at_start = elbo_of(variational, data.train).item()
    set_optimal_q(variational, data.train)
    best = variational.elbo(data.train, None)
    assert_close(terms["elbo"], best["elbo"])
    assert_close(terms["kl"], best["kl"])
    assert at_start < float(terms["elbo"]) - 1.0  # another q has a lower bound
    x = data.test.x[:3]
    ours, theirs = (m.sample_predictive(x, 1, streams().noise) for m in (collapsed, variational))
    assert_close(ours.mu, theirs.mu)
    assert_close(ours.v, theirs.v)


def test_bound_equals_the_formula_of_titsias():
    """ln N(y | m, Q + D) − ½ tr D⁻¹(K − Q), task by task: Titsias (2009), eq. (9)."""
    data, collapsed, _ = modules("igp")
    labels = group_by_task(data.train)
    total = 0.0
    evidence = 0.0
    with torch.no_grad():
        Z = collapsed.inducing
        z_task = collapsed.inducing_task
        Kzz = collapsed.covariance.matrix(Z, z_task, Z, z_task)
        Kzx = collapsed.covariance.matrix(Z, z_task, labels.x, labels.task)
        Kxx = collapsed.covariance.matrix(labels.x, labels.task, labels.x, labels.task)
        residual = labels.y - collapsed.mean(labels.x, labels.task)
        for t in range(3):
            is_labelled = labels.mask[t]
            n = int(is_labelled.sum())
            eye = torch.eye(len(Z[t]), dtype=F64)
            cross = Kzx[t][:, is_labelled]
            Q = cross.T @ torch.linalg.solve(Kzz[t] + collapsed.jitter * eye, cross)
            K = Kxx[t][is_labelled][:, is_labelled]
            noise = collapsed.likelihood.noise_variance[t]
            r = residual[t, is_labelled]

            def log_normal(covariance, r=r, n=n, noise=noise):
                C = covariance + noise * torch.eye(n, dtype=F64)
                return float(
                    -0.5 * (r @ torch.linalg.solve(C, r) + torch.logdet(C))
                    - 0.5 * n * math.log(2 * math.pi)
                )

            total += log_normal(Q) - 0.5 * float((K - Q).trace() / noise)
            evidence += log_normal(K)
    ours = float(elbo_of(collapsed, data.train))
    assert_close(ours, total)
    assert ours < evidence - 0.1


def test_all_inputs_as_inducing_points_give_the_evidence():
    data = problem(T=1, keep=1.0)
    keys = SPARSE | {"n_inducing": 100, "jitter": 1e-10, "mean": "zero"}
    collapsed = build_model("igp", data, bound="collapsed", **keys)
    exact = build_model("igp", data, **keys | {"posterior": "exact"})
    ours, theirs = (float(elbo_of(m, data.train)) for m in (collapsed, exact))
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert ours <= theirs + 1e-6


def test_gradient_equals_finite_differences():
    data, collapsed, _ = modules("cgp")
    assert gradient_error(collapsed, lambda: elbo_of(collapsed, data.train)) < 1e-6


def test_bound_requires_gaussian_noise():
    counts = problem(T=1, keep=1.0)
    y = counts.train.y.abs().round()
    batch = replace(counts.train, y=y)
    data = Supervised("counts", "real", batch, batch, None, task_names=["y"])
    model = component("model", "igp", bound="collapsed", link="log", **SPARSE)
    with pytest.raises(ConfigMismatchError, match=r"model.bound=collapsed: requires real labels"):
        model.build(data, streams())
    assert model.labels_misfit("binary") == ("bound=collapsed", "bound=variational")
    assert VariationalLayers not in model.capabilities()
