"""A model trained on one device makes the CPU's predictions on either device."""

import pytest
from device.devices import compare_exports
from support.runs.exported_families import FAMILIES

FAST = {"sparse_gp", "mlp_sgld", "topics", "structural_series"}
CASES = [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in FAMILIES]


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_exported_model_predicts_equally_on_devices(device, tmp_path, name):
    compare_exports(tmp_path, name, device, 1e-6)
