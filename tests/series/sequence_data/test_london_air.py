"""Sensor network: its rule for contaminated windows compared with loops, missing values, and user
errors."""

import math

import numpy as np
import pytest
from support.runs.configured import component, load
from support.series.small_sequences import run
from torch.testing import assert_close

from components.errors import (
    DamagedFileError,
)
from components.series.sequence_data.air_network import (
    SensorNetwork,
    Window,
    read_network,
)
from runner.execution.rng import Streams


def small_network():
    rng = np.random.default_rng(0)
    values = 6 + 0.5 * rng.standard_normal((60, 7))
    values[3:8, 2] += 30  # five outlying hours of the first window, three of the second
    values[22:25, 2] += 30
    values[41:45, 5] += 30  # four of the third, in which the network is high
    values[40:60] += 20
    values[21:24, 4] -= 30  # three below
    values[5, 1] = math.nan
    return SensorNetwork(values, [f"S{s}" for s in range(7)], np.datetime64("2024-01-01T00", "h"))


def test_rule_equals_the_yaml_description():
    network = small_network()
    windows = network.contaminated_windows(
        hours=20, threshold=10.0, max_level=17.0, max_missing=0.05
    )
    # only the better window of sensor 2, none of the high level
    assert windows[:2] == [Window(2, 0, 5), Window(4, 20, 3)]
    assert len({w.sensor for w in windows}) == len(windows) == 7
    literal = {}
    for s in range(7):
        apart = [
            abs(v - np.nanmedian(row))
            for v, row in zip(network.values[:, s], network.values, strict=True)
        ]
        sd = 1.4826 * np.nanmedian(apart)
        literal[s] = [sum(a > 10 * sd for a in apart[start : start + 20]) for start in (0, 20)]
    assert all(w.outlying == max(literal[w.sensor]) for w in windows if w.sensor != 1)
    # one of twenty missing is not less than 5 %
    assert next(w for w in windows if w.sensor == 1).start == 20
    high = network.contaminated_windows(hours=20, threshold=10.0, max_level=99.0, max_missing=0.05)
    assert high[1] == Window(5, 40, 4)


def test_hours_with_few_sensors_are_in_no_window():
    network = small_network()
    network.values[2, 2:] = math.nan
    assert all(w.start != 0 for w in network.contaminated_windows(20, 10.0, 17.0, 1.0))


def test_truth_is_the_median_and_gaps_are_counted(monkeypatch):
    network = small_network()
    network.values[4, 2] = math.nan
    monkeypatch.setattr(
        "components.series.sequence_data.london_air.simulated_network", lambda: network
    )
    problem, rng = load(
        "london_air", replicates=3, simulated=True, sensor="S2", start="2024-01-01T01", hours=20
    )
    assert problem.name == "london_air-sim"
    assert problem.states is None
    np.testing.assert_allclose(problem.means[0, :, 0], np.nanmedian(network.values[1:21], axis=1))
    np.testing.assert_array_equal(problem.observations[2, :, 0], network.values[1:21, 2])
    assert problem.missing.sum(1).tolist() == [1, 1, 1]
    assert problem.suspect.sum() == 4
    model = component("model", "matern_sde").build(problem, rng)
    filter_ = component("inference", "beta_bootstrap_filter", particles=50)
    posterior = run(
        component("inference", "ffbsi", filter=filter_, trajectories=40), model, problem, Streams(0)
    )
    scores = problem.score(posterior, rng)
    error = (problem.means[0] - posterior.signal.mean).square().sum(
        (1, 2)
    ) / problem.means.square().sum()
    assert_close(scores["nmse"], error)
    inside = (posterior.signal.lower <= problem.means) & (problem.means <= posterior.signal.upper)
    assert_close(scores["coverage90"], inside.double().mean((1, 2)))
    assert scores["missing"].tolist() == [1, 1, 1]
    assert set(problem.draw(posterior, rng)) == {"signal", "effective_size"}
    # Times with unknown truth do not count.
    problem.means[0, 5:] = math.nan
    part = problem.score(posterior, rng)
    early = (problem.means[0, :5] - posterior.signal.mean[:, :5]).square().sum(
        (1, 2)
    ) / problem.means[0, :5].square().sum()
    assert_close(part["nmse"], early)
    assert_close(part["coverage90"], inside[:, :5].double().mean((1, 2)))


def test_interval_covers_new_observations_not_the_signal():
    """With two almost equal particles, the 90 % interval has the width of the noise, 2 · 1.645
    σ."""
    problem, rng = load("london_air", replicates=40, simulated=True, hours=20)
    model = component("model", "matern_sde", variance=1e-4).build(problem, rng)
    filter_ = component("inference", "bootstrap_filter", particles=400)
    posterior = run(
        component("inference", "ffbs", filter=filter_), model, problem, Streams(0)
    ).signal
    assert abs(float((posterior.upper - posterior.lower).mean()) - 2 * 1.645) < 0.05


def test_other_files_are_not_accepted_as_a_network(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, data=np.zeros(3))
    with pytest.raises(
        DamagedFileError, match=r"contains no measurements of PM25 .*; replace or remove"
    ):
        read_network(path, "PM25")
