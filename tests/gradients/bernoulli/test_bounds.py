"""The bound reported by gradients of Bernoulli layers, compared with its enumeration."""

import pytest
from contract.only import restrict
from support.runs.configured import component
from support.small.small_bernoulli import binary_rows, enumerated_elbo, small_dvae

from components.contracts.capabilities import BernoulliLayers, RowGuide
from runner.execution.rng import Streams

BOUNDS = [
    *((name, 20_000, 0.08) for name in ("arm", "disarm", "arms", "rebar", "relax", "relax_rebar")),
    ("double_cv", 100, 1.5),
    ("rodeo", 100, 1.5),
]


@pytest.mark.parametrize(("name", "n_samples", "within"), BOUNDS)
def test_estimate_reports_bound(name, n_samples, within):
    """The module has only the capabilities that the gradient requires."""
    problem = binary_rows(n=2)
    rng = Streams(0)
    module = small_dvae(problem)
    stub = restrict(module, BernoulliLayers, *([RowGuide] if name.startswith("relax") else []))
    estimator = component("gradient", name, n_samples=n_samples)
    gradients, terms, _ = estimator.estimate(stub, problem.train, rng, estimator.init(stub, rng))
    exact = enumerated_elbo(module, problem.train).item()
    assert float(terms["elbo"]) == pytest.approx(exact, abs=within)
    assert [g.shape for g in gradients] == [p.shape for p in module.parameters()]
