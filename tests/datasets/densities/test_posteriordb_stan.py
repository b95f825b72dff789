"""A posteriordb folder read by its own package, and our eleven densities against its programs."""

import os
from pathlib import Path

import pytest
import torch
from support.runs.configured import F64, component, double, load, make_setting
from support.targets.gradients import value_and_gradient
from torch.testing import assert_close

from components.datasets.densities.posteriordb import paths, read
from components.datasets.files import locate
from components.datasets.posteriordb_densities import DENSITIES
from components.errors import ConfigMismatchError, DataUnavailableError
from runner.execution.rng import Streams

pytest.importorskip("posteriordb", reason="posteriordb is not installed")
pytest.importorskip("stanli", reason="stanli is not installed")

DATABASE = Path(__file__).parents[2] / "fixtures" / "posterior_database"


def coins(posterior="coins-coins", **keys):
    given = {"folder": str(DATABASE), "compiler": "stanli"} | keys
    return load("posteriordb_stan", posterior=posterior, **given)[0]


def test_program_data_and_reference_draws_are_read():
    """log π(θ) = 9 log p + 3 log(1 − p) with the Jacobian of p = 1/(1 + e^−θ)."""
    target = coins()
    theta = double([[0.3], [-1.0]])
    p = theta.sigmoid()
    assert_close(target.constrain(theta), torch.cat([p, 1 - p], 1))
    assert_close(target.log_density(theta), (9 * p.log() + 3 * (1 - p).log())[:, 0])
    assert target.names == ["q[1]", "q[2]"]
    assert target.reference_draws.shape == (2, 200, 2)
    assert ((target.mean - torch.tensor([0.75, 0.25])).abs() < 4 * target.mean_error).all()
    assert target.name.startswith("posteriordb_stan-coins-coins-")


def test_posterior_without_draws_lists_its_parameters():
    target = coins("coins-no_draws")
    assert (target.names, target.mean, target.reference_draws) == (["p"], None, None)


def test_missing_files_are_named():
    with pytest.raises(ConfigMismatchError, match=r" 3 posteriors .*; the nearest is coins-coins"):
        coins("coin-coins")
    with pytest.raises(DataUnavailableError, match=r"absent\.info\.json'; complete"):
        coins("coins-incomplete")
    with pytest.raises(
        DataUnavailableError,
        match=r"contains no folder posteriors, .*; set it to posterior_database",
    ):
        coins(folder="nowhere")


@pytest.mark.slow
@pytest.mark.parametrize("posterior", DENSITIES)
def test_densities_equal_those_of_the_database(posterior):
    """Values up to a constant, gradients and parameters at twenty reference draws, to rounding.

    POSTERIOR_DB_PATH is a folder posterior_database; RUNNER_DATA_DIR has our files."""
    database, folder = (os.environ.get(k) for k in ("POSTERIOR_DB_PATH", "RUNNER_DATA_DIR"))
    if database is None or folder is None:
        pytest.skip("POSTERIOR_DB_PATH or RUNNER_DATA_DIR is not set")
    setting = make_setting(folder)
    keys = {"folder": database, "posterior": posterior, "compiler": "stanli"}
    theirs = component("dataset", "posteriordb_stan", **keys).load(Streams(0), setting)
    data = read(locate(Path(folder), paths(posterior)[0], True))
    ours = DENSITIES[posterior](data, torch.empty(0, dtype=F64))
    columns = [theirs.names.index(name) for name in ours.names]
    x = theirs.reference_draws[0, :20][:, columns]
    theta = ours.unconstrain(x)
    scale = torch.ones(theirs.dim, dtype=F64)
    if posterior.startswith("hmm"):
        scale[:2] = simplex_scale(theirs, theta, x, columns)
    assert torch.allclose(theirs.constrain(theta * scale)[:, columns], x, rtol=1e-10)
    our_value, our_gradient = value_and_gradient(ours.log_density, theta)
    value, gradient = value_and_gradient(theirs.log_density, theta * scale)
    constant = value - our_value
    assert torch.allclose(constant, constant[0].expand(20), rtol=0, atol=1e-10)
    size = 1 + our_gradient.abs()
    assert ((gradient * scale - our_gradient).abs() / size).max() < 1e-9


def simplex_scale(theirs, theta, x, columns):
    """Ratio of Stan's coordinate of a two-element simplex to ours, the log odds: 1 in old
    versions."""
    scales = (1.0, -1.0, 0.5**0.5, -(0.5**0.5))

    def error(scale):
        row = double([scale, scale, *[1.0] * (theirs.dim - 2)])
        return float((theirs.constrain(theta * row)[:, columns] - x).abs().max())

    return min(scales, key=error)
