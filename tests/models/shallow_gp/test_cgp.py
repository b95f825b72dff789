"""cgp: inducing pairs, and a task predicted from others."""

import math
from dataclasses import replace

import torch
from support.runs.configured import build_model
from support.small.shallow_gp_problems import (
    PLAIN,
    predict,
    problem,
)


def exact(p, **changes):
    return build_model("cgp", p, **{**PLAIN, **changes})


def sparse(p, **changes):
    return exact(p, posterior="sparse", **changes)


def test_inducing_pairs_are_distributed_over_tasks():
    p = problem(n=30, keep=0.5)
    module = sparse(p, n_inducing=11)
    assert module.inducing.shape == (1, 11, 4)
    assert module.inducing_task[0].bincount().tolist() == [4, 4, 3]
    for z, t in zip(module.inducing[0], module.inducing_task[0], strict=True):
        assert (p.train.x[p.train.mask[:, t]] == z).all(1).any()


def test_a_task_without_labels_is_predicted_from_the_others():
    p = problem(n=40, keep=1.0)
    mask = p.train.mask.clone()
    mask[:, 2] = False
    p.train = replace(p.train, mask=mask)
    module = exact(p, rank=1)
    with torch.no_grad():
        module.covariance.W.fill_(1.0)
        module.covariance.log_kappa.fill_(math.log(1e-3))
        predictive = predict(module, p.test.x)
    assert predictive.mean[:, 2].std() > 0.1
