"""Files of a sampler and results of a run, read by the two installed parts of ArviZ, and by ArviZ
itself if it is installed."""

import arviz_base
import arviz_stats
import matplotlib.pyplot as plt
import pytest
import xarray
from support.runs.configured import generator, normal

from components.metrics.diagnostics import bulk_ess
from components.posteriors.draws import Draws
from components.posteriors.inference_data import parameter_groups, write


@pytest.fixture
def sample():
    """Three chains of a scalar and a vector, with energies."""
    g = generator(0)
    theta = normal(g, 3, 60, 3)
    energy = normal(g, 3, 60)
    stats = {"energy": energy, "diverging": energy > 2}
    return Draws(theta, theta[:, 0], ["mu", "theta[1]", "theta[2]"], stats=stats)


def test_posterior_parts_are_read_from_tree_and_file(sample, tmp_path):
    (path,) = write(sample, tmp_path)
    for tree in (parameter_groups(sample).tree(), xarray.open_datatree(path, engine="h5netcdf")):
        table = arviz_stats.summary(tree, round_to="none")
        assert list(table.index) == ["mu", "theta[1]", "theta[2]"]
        assert table["ess_bulk"].tolist() == pytest.approx(bulk_ess(sample.values).tolist())
        assert table["mean"].iloc[1] == pytest.approx(float(sample.values[..., 1].mean()))
        assert arviz_base.extract(tree).sizes["sample"] == 180
        assert arviz_stats.bfmi(tree)["energy"].shape == (3,)


def test_arviz_reads_and_plots_posteriors(sample, tmp_path):
    az = pytest.importorskip("arviz", "1.0", reason="ArviZ 1.x is not installed")
    (path,) = write(sample, tmp_path)
    for tree in (parameter_groups(sample).tree(), az.from_netcdf(path)):
        assert list(az.summary(tree).index) == ["mu", "theta[1]", "theta[2]"]
        for name in ("plot_forest", "plot_energy"):
            getattr(az, name)(tree, backend="matplotlib")
            plt.close("all")
