"""``make test-device``: small runs of every component on the stand-in for a GPU reproduce the CPU's
scores, because its generators and arithmetic are the CPU's.

Scores, attacks, evaluations and figures are part of a run. The fast tests have one run for each
family of each role.
"""

from __future__ import annotations

import pytest
from device.devices import (
    choose_one_per_family,
    compare_devices,
    draw_strictly,
    every_experiment,
    every_run,
    short_run,
)

RUNS = every_run()
EXPERIMENTS = every_experiment()
FAST = choose_one_per_family(RUNS)
CASES = [
    pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in sorted(RUNS)
]
CLOSE = 1e-6  # relative tolerance for values of order 1
CLOSE_FLOAT32 = 1e-2
# acra: the candidates of an email are the first among words with equal odds, in any order
UNSTEADY = {
    "acra": 1e-2,
    # p(x|y) from five draws along directions of nearly equal curvature, which rounding rotates
    "cvae_vis": 0.1,
}

# in float32, rounding can select another parent in multinomial resampling
IN_FLOAT64 = {"tan_as_released"}


def compare(make_job, monkeypatch, device: str, overrides: list[str], tolerance: float) -> None:
    draw_strictly(monkeypatch)
    compare_devices(make_job, device, overrides, lambda _: tolerance)


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_device_run_matches_cpu(device, make_job, monkeypatch, name):
    RUNS[name].skip_without_packages()
    overrides = short_run(name, RUNS[name].overrides)
    compare(make_job, monkeypatch, device, overrides, UNSTEADY.get(name.split("-")[2], CLOSE))


@pytest.mark.device
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(RUNS))
def test_float32_device_run_matches_cpu(device, make_job, monkeypatch, name):
    RUNS[name].skip_without_packages()
    overrides = [*short_run(name, RUNS[name].overrides), "dtype=float32"]
    compare(make_job, monkeypatch, device, overrides, CLOSE_FLOAT32)


@pytest.mark.device
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_device_experiment_matches_cpu(device, make_job, monkeypatch, name):
    tolerance = UNSTEADY.get(name, CLOSE_FLOAT32)  # some values are float32
    dtype = ["dtype=float64"] if name in IN_FLOAT64 else []
    compare(make_job, monkeypatch, device, [*EXPERIMENTS[name], *dtype], tolerance)


def test_fast_runs_cover_every_family():
    assert 40 <= len(FAST) <= 90, len(FAST)
