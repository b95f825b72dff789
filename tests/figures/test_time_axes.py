"""Time axes have dates if the data have dates, and vertical axes have units."""

import re

import numpy as np
import pytest
import torch
from matplotlib.dates import ConciseDateFormatter, num2date
from matplotlib.ticker import MaxNLocator
from support.runs.configured import F64, load

from components.contracts.predictive import GaussianMixture
from components.errors import SimulatedDataWarning
from components.figures.style import new_figure
from components.series.figures.forecast import forecast
from components.series.figures.time_axis import label_times

UNITS = {
    ("co2", ()): r"CO2, in units of \d+\.?\d* ppm",
    ("co2", (("standardise", "none"),)): "CO2, ppm",
    ("airline", ()): "passengers, log thousands",
    ("nutria", ()): "nutria, log relative abundance",
}


@pytest.mark.filterwarnings("ignore::components.errors.SimulatedDataWarning")
@pytest.mark.parametrize(("name", "keys"), UNITS)
def test_forecasts_have_dates_and_units(name, keys):
    problem, _ = load(name, n_train=20, n_ahead=4, **dict(keys))
    zero = torch.zeros(1, 4, 1, dtype=F64)
    label = problem.value_label
    mixture_law = GaussianMixture(zero, zero + 1)
    observations = problem.observations[0, :, 0]
    future = problem.future[0, :, 0]
    (axis,) = forecast(observations, future, mixture_law, problem.dates, label)["forecast"].axes
    assert axis.get_ylabel() == label
    assert re.fullmatch(UNITS[name, keys], label)
    dated = isinstance(axis.xaxis.get_major_formatter(), ConciseDateFormatter)
    assert dated == (name != "nutria")
    if dated:
        year = {"co2": 1965, "airline": 1949}[name]
        assert num2date(axis.get_xlim()[0]).year in (year - 1, year)
    else:
        assert axis.get_xlabel() == "t"
        assert isinstance(axis.xaxis.get_major_locator(), MaxNLocator)


def test_air_network_hours_have_dates():
    with pytest.warns(SimulatedDataWarning):
        problem, _ = load("london_air", hours=48)
    dates = np.array(problem.dates, dtype="datetime64[h]")
    assert len(dates) == 48
    assert set(np.diff(dates).astype(int)) == {1}
    assert problem.about["sensor"].endswith(f"from {problem.dates[0]}")
    _, (axis,) = new_figure()
    axis.plot(dates, problem.observations[0, :, 0])
    label_times(axis, problem.dates)
    assert isinstance(axis.xaxis.get_major_formatter(), ConciseDateFormatter)


def test_flight_states_have_units():
    problem, _ = load("tan", n_steps=3)
    assert problem.state_labels[0] == "position x, m"
    assert problem.state_labels[-1] == "vertical velocity, m/s"
    assert [label.partition(", ")[0] for label in problem.state_labels] == problem.state_names
    plain, _ = load("wiener_velocity", n_steps=3)
    assert plain.state_labels == plain.state_names
