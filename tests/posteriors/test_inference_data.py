"""Posteriors written as InferenceData and read by xarray and ArviZ."""

import warnings

import numpy as np
import pytest
import torch
import xarray
from support.runs.configured import F64, draw_normal

from components.errors import IncompleteResultWarning
from components.posteriors import inference_data
from components.posteriors.draws import Draws
from components.posteriors.inference_data import write


class Exponentiated:
    """Parameters exp(θ), which distinguish written values from θ."""

    def constrain(self, theta):
        return theta.exp()


def draws(names, n=20, size=None, **more):
    theta = draw_normal(3, n, len(names) or size)
    return Draws(theta, torch.zeros(3, theta.shape[2]), names, Exponentiated(), **more)


def open_tree(sample, folder):
    (path,) = write(sample, folder)
    assert path == folder / "posterior.nc"
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        return tree.load()


def test_names_become_variables_with_dimensions(tmp_path):
    names = [
        "mu",
        "theta[1]",
        "theta[2]",
        "w[0,1]",
        "w[0,0]",
        "w[1,0]",
        "w[1,1]",
        "odd[1]",
        "odd[2,1]",
        "a/b",
    ]
    sample = draws(names)
    posterior = open_tree(sample, tmp_path).posterior
    assert set(posterior.data_vars) == {"mu", "theta", "w", "odd[1]", "odd[2,1]", "a_b"}
    assert posterior["mu"].dims == ("chain", "draw")
    assert posterior["theta"].dims == ("chain", "draw", "theta_dim_0")
    assert posterior["theta"].coords["theta_dim_0"].values.tolist() == [1, 2]
    values = sample.values.numpy()
    np.testing.assert_array_equal(posterior["theta"].sel(theta_dim_0=2), values[:, :, 2])
    # for any order of the names
    for name, i, j in (("w[0,1]", 0, 1), ("w[0,0]", 0, 0), ("w[1,0]", 1, 0)):
        np.testing.assert_array_equal(
            posterior["w"].sel(w_dim_0=i, w_dim_1=j), values[:, :, names.index(name)]
        )
    np.testing.assert_array_equal(posterior["odd[2,1]"], values[:, :, 8])
    np.testing.assert_array_equal(posterior["a_b"], values[:, :, 9])


def test_sampler_statistics_are_stored_without_data(tmp_path):
    stats = {"lp": torch.randn(3, 20, dtype=F64), "diverging": torch.zeros(3, 20, dtype=torch.bool)}
    stats["diverging"][1, 4] = True
    tree = open_tree(draws(["mu"], stats=stats, log_weights=torch.randn(3, 20)), tmp_path)
    assert set(tree.children) == {"posterior", "sample_stats", "unconstrained_posterior"}
    assert set(tree.sample_stats.data_vars) == {"lp", "diverging", "log_weight"}
    assert (
        tree.sample_stats["diverging"].values.astype(bool).tolist() == stats["diverging"].tolist()
    )
    np.testing.assert_array_equal(tree.sample_stats["lp"], stats["lp"].numpy())


def test_unnamed_parameters_form_one_vector(tmp_path):
    assert open_tree(draws([], size=5), tmp_path).posterior["theta"].shape == (3, 20, 5)


def test_many_parameters_form_one_named_vector(tmp_path):
    # coefficients of a wide regression of classes
    names = [f"x{j}/{c}" for j in range(400) for c in range(5)]
    sample = draws(names, n=4)
    theta = open_tree(sample, tmp_path).posterior["theta"]
    assert theta.dims == ("chain", "draw", "parameter")
    np.testing.assert_array_equal(
        theta.sel(parameter="x7/3"), sample.values[:, :, names.index("x7/3")]
    )


def test_excess_draws_and_parameters_are_thinned_or_left_out(tmp_path, monkeypatch):
    # seven draws of three chains and two parameters fit
    monkeypatch.setattr(inference_data, "MOST_NUMBERS", 3 * 2 * 7)
    sample = draws(["a", "b"], stats={"lp": torch.arange(60.0).reshape(3, 20)})
    with pytest.warns(IncompleteResultWarning, match="posterior.nc .* every 3th draw, 6 of 20"):
        tree = open_tree(sample, tmp_path)
    assert tree.posterior.draw.values.tolist() == [2, 5, 8, 11, 14, 17]
    np.testing.assert_array_equal(tree.posterior["b"], sample.values[:, 2::3, 1].numpy())
    assert tree.sample_stats["lp"].values[0].tolist() == [2, 5, 8, 11, 14, 17]
    (tmp_path / "posterior.nc").unlink()
    with pytest.warns(
        IncompleteResultWarning,
        match="posterior.nc .* 3 chains of 12 parameters .* limit",
    ):
        assert write(draws([], size=12), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_absent_draws_write_nothing_and_few_are_accepted(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", IncompleteResultWarning)
        assert write(draws(["a"], n=0), tmp_path) == []
        assert open_tree(draws(["a"], n=1), tmp_path).posterior["a"].shape == (3, 1)


def test_file_equals_the_tree_of_arviz(tmp_path):
    chains_draws = draw_normal(3, 20, seed=1)
    stats = {
        "diverging": chains_draws > 1,
        "energy": chains_draws,
        "tree_depth": (chains_draws * 3).long(),
        "gradient": chains_draws.unsqueeze(2).expand(3, 20, 2),
    }
    sample = draws(["mu", "theta[1]", "theta[2]", "w[0,0]", "w[0,1]"], stats=stats)
    expected = inference_data.parameter_groups(sample).tree()
    file = open_tree(sample, tmp_path)
    assert set(file.children) == set(expected.children)
    for name, group in expected.children.items():
        xarray.testing.assert_equal(file[name].to_dataset(), group.to_dataset())
        for variable in group.to_dataset().variables:
            assert file[name][variable].dtype == group[variable].dtype


def test_excess_variables_keep_their_names(tmp_path):
    names = [f"v{k}" for k in range(inference_data.MOST_VARIABLES + 1)]
    posterior = open_tree(draws(names), tmp_path).posterior
    assert posterior["theta"].coords["parameter"].values.tolist() == names
