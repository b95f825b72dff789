"""Fixtures that every test folder uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from runner.compose.config import prepare
from runner.compose.overrides import compose

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start
torch.set_num_threads(
    1
)  # of this one: small tensors gain nothing by more, and on a busy machine threads wait for each other
ROOT = Path(__file__).parent.parent


@pytest.fixture
def make_job(tmp_path):
    """A validated job from overrides, writing to a temporary folder and to no MLflow."""

    def make(*overrides: str):
        fixed = [
            f"output_dir={tmp_path / 'outputs'}",
            f"data_dir={tmp_path / 'data'}",
            "tracking=false",
            "offline=true",
        ]
        given = {o.split("=")[0] for o in overrides}
        return prepare(*compose([*(f for f in fixed if f.split("=")[0] not in given), *overrides]))

    return make
