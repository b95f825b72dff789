import pytest
import torch
from support.runs.configured import double
from support.targets.known_targets import F64, GaussianTarget, correlated_gaussian, sample_target
from torch.testing import assert_close

from components.inference.log_joint import value_and_gradient
from runner.execution.rng import Streams

# The six starting points and the results for Figure 2.2 in the author's notebook
# Gaussian_example_jax.ipynb of the repository vicgalle/sgmcmc-force.
NOTEBOOK_START = [
    [3.2593813, 3.1996868],
    [2.9687963, 3.0197053],
    [3.0067084, 3.0664346],
    [2.8299875, 3.3063397],
    [2.9118252, 2.6788821],
    [3.0338914, 3.0519772],
]
NOTEBOOK_END = [
    [1.001397, 0.44423074],
    [-0.9243896, -0.38732374],
    [-0.30366102, -0.00298705],
    [-0.31783342, 1.0628091],
    [0.48936245, -0.9865278],
    [0.19265223, -0.05246079],
]


def test_single_particle_ascends_gradient():
    target = correlated_gaussian()
    z = target.sample_prior(1, Streams(0).init)
    for _ in range(5):
        z = z + 0.05 * value_and_gradient(target, z, None)[1]
    single_chain = sample_target("svgd", target, 5, chains=1, step_size=0.05, burn_in=4, thinning=1)
    assert_close(single_chain.draws[:, -1], z)
    mode = sample_target("svgd", target, 2000, chains=1, step_size=0.1, burn_in=1999, thinning=1)
    assert_close(mode.draws[0, -1], target.mean)


def test_figure_2_2_matches_published_notebook():
    """The notebook's step is 0.01 without the 1/L of (2.4), its h is 2, and its target −Σ‖z‖² is
    N(0, I/2), not the N(0, I) of the text.

    The σ published with Figure 2.2, 0.70 and 0.74, use all 201 states of the paths, including the
    start.
    """
    start = double(NOTEBOOK_START)
    target = GaussianTarget(torch.zeros(2, dtype=F64), 0.5 * torch.eye(2, dtype=F64))
    target.sample_prior = lambda n, generator: start
    draws = sample_target(
        "svgd", target, 200, chains=6, step_size=0.06, bandwidth=2.0, burn_in=0, thinning=1
    ).draws
    # The notebook ran on a TPU with matrix products of 8 mantissa bits: 2e-3 after 200
    # steps.
    assert_close(draws[:, -1], double(NOTEBOOK_END), rtol=0, atol=2e-3)
    path = torch.cat([start.unsqueeze(1), draws], 1)
    assert path.mean() == pytest.approx(0.18421564, abs=5e-4)
    assert path.std((0, 1), correction=0).tolist() == pytest.approx(
        [0.6957327, 0.73811656], abs=5e-4
    )
    at_rest = path[:, 100:].std((0, 1), correction=0)
    # below 0.707, the σ of that target: without the first states of the paths SVGD underestimates
    # it
    assert (at_rest < 0.65).all()
