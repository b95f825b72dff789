"""A training step synchronises the CPU with a GPU at most once, for the check of finite values."""

import pytest
from device import stand_in

from scripts.device_steps import COUNTED, WARM, make_step

STEPS = 5
# The chains of hmc learn their trajectory length from two numbers per warm-up step; the trees of
# nuts grow on the CPU, which waits for each leapfrog step and for the numbers of each doubling.
WAITS = {"hmc": 3, "nuts": 15}


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COUNTED)
def test_step_synchronises_at_most_once(device, tmp_path, name):
    assert count(device, tmp_path, COUNTED[name]) <= WAITS.get(name, 1)


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")
def test_hmc_synchronises_once_after_warm_up(device, tmp_path):
    assert count(device, tmp_path, [*COUNTED["hmc"], "inference.warmup=2"]) <= 1


def count(device, folder, overrides):
    step = make_step(folder, device, overrides)
    for _ in range(WARM):
        step()
    stand_in.clear_waits()
    for _ in range(STEPS):
        step()
    return sum(stand_in.waits().values()) / STEPS
