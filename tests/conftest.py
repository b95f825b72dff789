"""Fixtures that every test folder uses."""

from __future__ import annotations

import gc
import os
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from matplotlib.figure import Figure
from support.figure_layout import layout_faults
from support.runs.configured import made_job
from support.runs.sketched import SKETCH

from runner.tracking import handover
from runner.tracking.mirror import open_client

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for processes started by tests
torch.set_num_threads(
    1
)  # for this process: small tensors need no more, and on a busy machine threads wait for each other
ROOT = Path(__file__).parent.parent
gc.disable()  # during collection, which creates a million permanent objects


def pytest_collection_finish():
    """Exclude imported and collected objects from further garbage collections."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_environment():
    """Restore the environment, because commands set variables such as threads=100000."""
    with patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def figures_fit():
    """Every figure that a test draws fits its canvas and can be read.

    tests/experiments draws the figures of sketched records."""
    figures = []

    def subplots(figure, *args, **kwargs):
        figures.append(figure)
        return draw_subplots(figure, *args, **kwargs)

    draw_subplots = Figure.subplots
    with patch.object(Figure, "subplots", subplots):
        yield
    assert [
        fault
        for figure in figures
        if figure.get_label() != SKETCH
        for fault in layout_faults(figure)
    ] == []


@pytest.fixture
def no_pusher(monkeypatch):
    """Start no pusher: a run requests its upload and continues, and the test uploads it itself."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(handover, "start_pusher", lambda _: None)
    monkeypatch.setattr(handover, "TIMEOUT_SECONDS", 0.0)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory):
    """Empty MLflow database, whose creation takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    open_client(folder)
    return folder / "mlflow.db"


@pytest.fixture
def outputs(tmp_path, empty_store, no_pusher):
    """Output folder of ``make_job`` with an empty store."""
    (tmp_path / "outputs").mkdir()
    return Path(shutil.copy(empty_store, tmp_path / "outputs" / "mlflow.db")).parent


@pytest.fixture
def make_job(tmp_path):
    """``made_job`` in a temporary folder."""
    return partial(made_job, tmp_path)
