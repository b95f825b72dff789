"""A model that was trained on one device predicts on another, and on its own, what the CPU's
predicts."""

from __future__ import annotations

import numpy as np
import pytest
from exported_families import FAMILIES, HOUSES, TEXTS, TRAIN, fit

from runner import load_model

FAST = {"sparse_gp", "mlp_sgld", "topics", "structural_series"}
CASES = [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in FAMILIES]
CLOSE = 1e-6
# draws of a loaded model's predictions are those of its device's generator, whose state the
# stand-in takes from the CPU's


def rows_of(folder, model):
    """New rows for a model, in the form that its family asks for."""
    if model.answers == "forecasts":
        return None
    if model.answers == "topics":
        return folder / "data" / TEXTS
    lines = (folder / "data" / HOUSES).read_text().splitlines()
    rows = folder / "rows.csv"
    cells = [line.split(",")[:3] for line in [lines[0], *lines[1 + TRAIN :]]]
    rows.write_text("\n".join(",".join(row) for row in cells) + "\n")
    return rows


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_an_exported_model_predicts_the_same_on_every_device(device, tmp_path, name):
    found = {}
    for trained in ("cpu", device):
        home = tmp_path / trained
        home.mkdir()
        file = fit(home, name, device=trained).export(home / "model.zip")
        for loaded in ("cpu", device):
            model = load_model(file, device=loaded)
            found[trained, loaded] = model.predict(rows_of(home, model))
    whole = found.pop(("cpu", "cpu"))
    for where, frame in found.items():
        assert list(frame) == list(whole), where
        numbers = whole.select_dtypes("number")
        np.testing.assert_allclose(frame[list(numbers)], numbers, CLOSE, CLOSE, err_msg=str(where))
        others = [name for name in whole if name not in numbers]
        assert (frame[others] == whole[others]).all(axis=None), where
