"""Estimators that learn control variates: compared with an enumerated gradient, also at their first
step."""

import pytest
from support.runs.configured import component
from support.small.small_bernoulli import (
    binary_rows,
    check_unbiased,
    fresh_z,
    holm_p,
    small_dvae,
)

from components.contracts.problems import Rows

LEAVE_ONE_OUT = [("double_cv", {}), ("rodeo", {"widths": [4]})]
RELAXED = [("rebar", {}), ("relax", {"widths": [4]}), ("relax_rebar", {"widths": [4]})]


@pytest.mark.parametrize(
    ("name", "layers", "keys"),
    [
        *(
            (name, layers, keys | {"n_samples": n_samples})
            for name, keys in LEAVE_ONE_OUT
            for layers, n_samples in ((1, 2), (2, 3))
        ),
        *(
            (name, layers, keys)
            for name, keys in [("rebar", {"adapt": "static"}), *RELAXED]
            for layers in (1, 2)
        ),
    ],
)
def test_learning_gradients_are_unbiased(name, layers, keys):
    problem = binary_rows(n=2)
    estimator = component("gradient", name, lr=0.02, **keys)
    check_unbiased(estimator, small_dvae(problem, layers), Rows(problem.train.x, 3.0))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        *((name, keys | {"lr": 2.0, "n_samples": 2}) for name, keys in LEAVE_ONE_OUT),
        *((name, keys | {"lr": 1.0}) for name, keys in RELAXED),
    ],
)
def test_learnt_parameters_are_independent_of_noise(name, keys):
    problem = binary_rows(n=1)
    z = fresh_z(component("gradient", name, **keys), small_dvae(problem), problem.train, 120)
    assert holm_p(z, 120) > 0.001, f"largest |z| {float(z.abs().max()):.1f}"
