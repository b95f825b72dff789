"""Toy regressions whose labels have another law at every input."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from small_problems import component

from components.contracts.roles import Setting
from components.datasets.tables.bimodal_toy import BimodalToy
from components.datasets.tables.heteroscedastic_toy import HeteroscedasticToy
from runner.run.rng import Streams


def test_moments_of_the_heteroscedastic_law():
    g = torch.Generator().manual_seed(0)
    x = torch.full((200_000,), 1.3, dtype=torch.float64)
    y = HeteroscedasticToy.law(x, g)
    assert float(y.mean()) == pytest.approx(7 * math.sin(1.3), abs=0.03)
    assert float(y.std()) == pytest.approx(3 * abs(math.cos(0.65)), abs=0.02)


def test_branches_of_the_bimodal_law():
    g = torch.Generator().manual_seed(0)
    x = torch.full((200_000,), -0.4, dtype=torch.float64)
    y = BimodalToy.law(x, g)
    upper = y > 2.5
    assert float(upper.double().mean()) == pytest.approx(0.5, abs=0.01)
    assert float(y[upper].mean()) == pytest.approx(10 * math.cos(0.4), abs=0.02)
    assert float(y[~upper].mean()) == pytest.approx(-10 * math.sin(0.4), abs=0.02)


@pytest.mark.parametrize(("name", "reach"), [("heteroscedastic_toy", 4.0), ("bimodal_toy", 2.0)])
def test_rows_are_standardised_and_units_kept(name, reach):
    data = component("dataset", name, n_train=500, n_test=30)
    problem = data.load(Streams(2), Setting(Path(), torch.device("cpu"), torch.float64, 1))
    assert problem.train.x.shape == (500, 1)
    assert problem.test.x.shape == (30, 1)
    assert float(problem.train.y.mean()) == pytest.approx(0, abs=1e-9)
    assert float(problem.train.y.std(correction=0)) == pytest.approx(1)
    assert float(problem.train.x.abs().max()) == pytest.approx(
        math.sqrt(3), rel=0.05
    )  # of a uniform law, whatever its reach
    assert float(problem.y_std) > 4
