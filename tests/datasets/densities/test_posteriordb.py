"""posteriordb as a dataset: files, references, and the simulated regression that replaces them."""

from pathlib import Path

import pytest
import torch
from support.runs.configured import generator, load_problem, normal
from support.runs.real_files import FOLDER, find_or_skip
from torch.testing import assert_close

from components.datasets import files
from components.datasets.densities.posteriordb import SIMULATED, Posteriordb, paths, read
from components.datasets.posteriordb_densities import DENSITIES
from components.posteriors.draws import Draws
from runner.execution.rng import Streams


def test_every_posterior_has_a_density_and_catalogued_files():
    (choices,) = [
        f.annotation.__args__ for n, f in Posteriordb.model_fields.items() if n == "posterior"
    ]
    assert set(choices) == {*DENSITIES, SIMULATED}
    catalogue = {f.path: f for f in files.catalogue() if f.dataset == "posteriordb"}
    assert set(catalogue) == {path for posterior in DENSITIES for path in paths(posterior)}
    assert all(f.sha256 and f.urls[0].endswith(Path(f.path).name) for f in catalogue.values())


@pytest.mark.parametrize("posterior", DENSITIES)
def test_real_posteriors_load_with_their_reference(posterior):
    find_or_skip(*paths(posterior))
    problem = load_problem("posteriordb", FOLDER, posterior=posterior)
    assert problem.name == posterior
    theta = problem.sample_prior(50, generator(0))
    assert theta.shape == (50, problem.dim)
    assert torch.isfinite(problem.log_density(theta)).all()
    assert problem.constrain(theta).shape == (50, len(problem.names)) == (50, len(problem.mean))
    data = read(Path(FOLDER) / paths(posterior)[0])
    density = DENSITIES[posterior](data, theta)
    assert_close(density.unconstrain(density.constrain(theta)), theta, rtol=1e-6, atol=1e-6)
    assert (problem.coordinate_scale > 0).all()
    z = (problem.reference_draws.mean((0, 1)) - problem.mean) / problem.mean_error
    assert z.abs().max() < 0.1, (
        "the reference moments are those of the reference draws, but for rounding"
    )
    # reference draws pass as those of a sampler
    perfect = Draws(problem.reference_draws, problem.reference_draws[:, 0], problem.names)
    problem.log_density = lambda x: torch.zeros(len(x))
    scores = problem.score(perfect, Streams(0))
    assert scores["z_max"] < 0.1
    assert scores["error_sd"] < 1e-3


def test_stand_in_is_the_same_regression_for_all_seeds():
    first, other = (load_problem("posteriordb", seed=s, posterior=SIMULATED) for s in (0, 1))
    assert torch.equal(first.mean, other.mean)
    assert first.mean_error is None


def test_z_scores_count_both_errors_and_weights():
    problem = load_problem("posteriordb", posterior=SIMULATED)
    g = generator(0)
    n = 400
    sd = (problem.second_moment - problem.mean**2).sqrt()
    values = problem.mean + sd * normal(g, 4, n, problem.dim)
    draws = Draws(values, values[:, 0])  # without a model, θ is the parameter vector
    exact = problem.score(draws, Streams(0))
    assert 0.1 < exact["z_max"] < 4
    assert exact["error_sd"] == pytest.approx(exact["z_max"] / (4 * n) ** 0.5, rel=0.3), (
        "draws are independent"
    )
    problem.mean_error = 10 * sd
    problem.second_moment_error = 10 * sd
    assert problem.score(draws, Streams(0))["z_max"] < 0.01 * exact["z_max"]
    problem.mean_error = problem.second_moment_error = None
    # weights that undo a proposal twice as wide
    values = problem.mean + 2 * sd * normal(g, 4, 2000, problem.dim)
    white = (values - problem.mean) / sd
    log_weights = -0.5 * white.square().sum(2) * (1 - 0.25)
    weighted = problem.score(Draws(values, values[:, 0], log_weights=log_weights), Streams(0))
    assert 0.1 < weighted["z_max"] < 4
    assert problem.score(Draws(values, values[:, 0]), Streams(0))["z_max"] > 10
