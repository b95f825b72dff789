"""Series with held-out last observations."""

import math

import pytest
import torch
from support.runs.configured import component, double, load, make_setting
from support.runs.real_files import FOLDER, find_or_skip
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.series.forecast_data.co2 import CO2
from runner.execution.rng import Streams


def test_alternating_series_has_two_values():
    problem, _ = load("alternating")
    assert problem.observations.shape == (1, 100, 1)
    assert problem.observations[0, :4, 0].tolist() == [0, 1, 0, 1]
    assert problem.future[0, :, 0].tolist() == [0, 1, 0, 1, 0]
    assert problem.system.n_classes == 5


def test_dlm_sim_has_the_moments_of_its_stationary_law():
    """z: mean 2, variance σ²_tr/(1 − ¼); x = 3z + ½ + noise, cov(x_t, x_{t+1}) = 9 · ½ var z."""
    problem, _ = load("dlm_sim", n_steps=20_000, n_ahead=1, observation_sd=0.5, transition_sd=0.8)
    x = problem.observations[0, 100:, 0]
    variance = 0.64 / 0.75
    assert x.mean() == pytest.approx(6.5, abs=0.15)
    assert x.var() == pytest.approx(9 * variance + 0.25, rel=0.05)
    centred = x - x.mean()
    assert (centred[1:] * centred[:-1]).mean() == pytest.approx(4.5 * variance, rel=0.08)
    assert problem.system.parameters == {"observation_sd": 0.5, "transition_sd": 0.8}


def test_dlm_sim_starts_at_zero():
    """z_0 = 0, so that x_1 = 3.5 with hardly any noise, then 5.0, 5.75, …"""
    problem, _ = load("dlm_sim", n_steps=5, n_ahead=1, observation_sd=1e-9, transition_sd=1e-9)
    assert_close(problem.observations[0, :, 0], double([3.5, 5.0, 5.75, 6.125]))


def test_hmm_sim_has_the_numbers_of_classes():
    problem, _ = load("hmm_sim")
    assert set(problem.observations.flatten().tolist()) <= set(range(5))


def test_hmm_sim_with_one_state_draws_from_its_row():
    """One state, with a concentration so large that the row is uniform."""
    problem, _ = load(
        "hmm_sim", n_steps=3001, n_ahead=1, states=1, classes=3, emission_concentration=1e7
    )
    counts = torch.bincount(problem.observations.flatten().long(), minlength=3) / 3000
    assert torch.allclose(counts, torch.full((3,), 1 / 3), atol=4 * math.sqrt(2 / 9 / 3000))


@pytest.mark.parametrize("standardise", ["train", "record", "none"])
def test_co2_is_predicted_in_standardised_units(standardise):
    problem, _ = load("co2", simulated=True, standardise=standardise)
    record = component("dataset", "co2").simulate()
    series = torch.cat([problem.observations, problem.future], 1)[0, :, 0]
    assert problem.name == "co2-sim"
    assert problem.observations.shape == (1, 120, 1)
    assert problem.future.shape == (1, 24, 1)
    about = {"train": record[:120], "record": record}.get(standardise)
    if about is None:
        assert torch.equal(series, record[:144])
    else:
        assert_close(series * about.std(correction=0) + about.mean(), record[:144])


def test_co2_equals_the_record():
    find_or_skip(CO2.path)
    setting = make_setting(FOLDER)
    problem = component("dataset", "co2", standardise="none").load(Streams(0), setting)
    assert problem.name == "co2"
    assert float(problem.observations[0, 0, 0]) == pytest.approx(320.62, abs=1e-4)
    assert problem.observations.min() > 315
    assert problem.future.max() < 340


@pytest.mark.parametrize(
    ("name", "months", "dates"), [("airline", 144, ("1949-01", "1960-12")), ("nutria", 120, ())]
)
def test_monthly_records_have_their_length_and_dates(name, months, dates):
    cls = type(component("dataset", name))
    keys = {"n_train": months - 24, "n_ahead": 24, "log": False}
    problem, _ = load(name, simulated=True, **keys)
    whole = torch.cat([problem.observations, problem.future], 1)[0, :, 0]
    assert len(whole) == months
    assert (problem.dates[:1] + problem.dates[-1:]) == dates
    with pytest.raises(
        ConfigMismatchError, match=rf"requires {months + 1} months, but the record has {months}"
    ):
        load(name, simulated=True, **keys | {"n_train": months - 23})
    log, _ = load(name, simulated=True, **keys | {"log": True})
    assert_close(log.observations.exp(), problem.observations)
    if (FOLDER / cls.path).is_file():
        genuine = component("dataset", name, **keys).load(None, make_setting(FOLDER))
        y = torch.cat([genuine.observations, genuine.future], 1)[0, :, 0]
        assert genuine.name == name
        totals = {"airline": (112, 432, 622), "nutria": (0.55, 2.65, 5.55)}[name]
        assert (float(y[0]), float(y[-1]), float(y.max())) == totals


def test_sunspots_with_zeros_have_no_logarithm():
    problem, _ = load("sunspots", simulated=True)
    assert (problem.observations.shape, problem.future.shape) == ((1, 480, 1), (1, 36, 1))
    assert problem.season == 12
    with pytest.raises(
        ConfigMismatchError, match=r"dataset\.log=true: month 1 is 0.*; set dataset\.log=false"
    ):
        load("sunspots", simulated=True, log=True)
