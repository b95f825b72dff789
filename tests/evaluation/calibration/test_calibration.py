"""Simulation-based calibration: ranks are uniform for the exact posterior, but not for deliberate
faults."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from support.runs.configured import component, load, normal

from components.errors import ConfigMismatchError
from components.evaluation.calibration.quantities import compute_quantities, rank, thin
from components.evaluation.calibration.simulated import (
    check_prior,
    check_simulates,
    simulate,
)
from components.metrics.rank_uniformity import summarise, worst_p
from components.posteriors.draws import Draws
from runner.execution.rng import Streams

DRAWS = 19
BINS = 10
DATA_SETS = 200


@pytest.fixture(scope="module")
def line():
    """A regression of 8 rows with known noise, and its model."""
    problem, rng = load(
        "linear_simulation", n_train=8, n_test=5, beta=[1.0, 2.0], correlation=0.5, noise=1.0
    )
    keys = {"prior_scale": 1.0, "intercept_scale": 1.0, "noise": 1.0}
    return problem, component("model", "linear_regression", **keys), rng


def exact_draws(model, problem, n, generator):
    """Independent draws of the conjugate posterior [1, n, P]."""
    posterior = model.coefficients(problem.train)
    z = normal(generator, n, len(posterior.m))
    theta = posterior.m + torch.linalg.solve_triangular(posterior.L.T, z.T, upper=True).T
    return Draws(theta[None], theta[:1], list(model.names), model)


def change(draws, kind, model, generator):
    """Introduce one fault into the draws of a posterior."""
    theta = draws.flat
    centre = theta.mean(0)
    if kind == "ignores data":
        theta = model.sample_prior(len(theta), generator)
    else:
        scale, shift = {"narrow": (0.4, 0.0), "wide": (3.0, 0.0), "shifted": (1.0, 0.4)}[kind]
        theta = centre + scale * (theta - centre) + shift
    return Draws(theta[None], draws.start, draws.names, draws.model)


def collect_ranks(line, kind=None, data_sets=DATA_SETS):
    problem, settings, rng = line
    model = settings.build(problem, rng)
    rows = []
    for r in range(data_sets):
        streams = Streams(5, r)
        simulated = simulate(model, problem, 2, streams)
        fitted = settings.build(simulated.problem, streams)
        posterior = exact_draws(fitted, simulated.problem, 3 * DRAWS, streams.noise)
        if kind is not None:
            posterior = change(posterior, kind, fitted, streams.noise)
        quantities = compute_quantities(simulated, posterior, DRAWS, streams.evaluation)
        rows.append(
            {name: rank(quantity, streams.evaluation) for name, quantity in quantities.items()}
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def summaries(ranks):
    rng = np.random.default_rng(0)
    return {name: summarise(values, DRAWS, BINS, rng) for name, values in ranks.items()}


def test_ranks_of_the_exact_posterior_are_uniform(line):
    summary = summaries(collect_ranks(line))
    assert set(summary) == {
        "intercept",
        "x1",
        "x2",
        "f(x1)",
        "y(x1)",
        "f(x2)",
        "y(x2)",
        "log joint",
    }
    assert worst_p(list(summary.values())) > 0.01


@pytest.mark.parametrize(
    ("kind", "verdict"), [("narrow", "too narrow"), ("wide", "too wide"), ("shifted", "too high")]
)
def test_faults_are_detected_and_named(line, kind, verdict):
    summary = summaries(collect_ranks(line, kind, 100))
    assert worst_p(list(summary.values())) < 1e-4
    assert verdict in summary["x1"].verdict


def test_log_joint_detects_posterior_that_ignores_data(line):
    summary = summaries(collect_ranks(line, "ignores data"))
    joint = summary.pop("log joint")
    assert worst_p(list(summary.values())) > 0.01
    assert joint.chi2_p < 1e-6


def test_few_draws_and_ties_are_handled(line):
    problem, settings, rng = line
    draws = exact_draws(settings.build(problem, rng), problem, 10, rng.noise)
    with pytest.raises(
        ConfigMismatchError, match=r"stores 10 draws, but --draws 19 .*; raise steps"
    ):
        thin(draws, 19, rng.evaluation)
    from components.evaluation.calibration.quantities import RankedQuantity

    same = RankedQuantity(1.0, torch.ones(9))
    counts = np.bincount([rank(same, rng.evaluation) for _ in range(500)], minlength=10)
    assert chisquare(counts).pvalue > 1e-3


def test_thinned_draws_are_evenly_spaced_in_every_chain():
    draws = Draws(torch.arange(40.0).view(2, 20, 1), torch.zeros(2, 1))
    rows = thin(draws, 9, torch.Generator())
    assert len(rows) == 9
    assert set((rows // 20).tolist()) == {0, 1}
    assert set((rows % 20).tolist()) <= {3, 7, 11, 15, 19}


def test_model_without_simulator_is_refused(line):
    problem, settings, rng = line
    ridge = component("model", "ridge").build(problem, rng)
    with pytest.raises(ConfigMismatchError, match=r"model=ridge: cannot simulate.*igp"):
        check_simulates(ridge, problem, "ridge")
    flat = component("model", "mlp", widths=[], noise_spread=None).build(problem, rng)
    with pytest.raises(ConfigMismatchError, match=r"model\.noise_spread=null: flat; set"):
        check_simulates(flat, problem, "mlp")
    problem_before = settings.build(problem, rng)
    after = settings.model_copy(update={"prior_scale": 2.0}).build(problem, rng)
    with pytest.raises(
        ConfigMismatchError, match=r"prior depends on the labels.*; calibration requires a prior"
    ):
        check_prior(
            problem_before, after, problem_before.sample_prior(1, rng.noise), "linear_regression"
        )
