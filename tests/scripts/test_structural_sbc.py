"""Simulation-based calibration of the structural sampler: a right one is uniform, broken ones are
not."""

from __future__ import annotations

import pytest
import torch

from scripts import structural_sbc as sbc


@pytest.mark.parametrize(
    "name", ["goodwill and regression", "level, errors of Student's t", "autoregression"]
)
def test_every_row_has_ranks(name, monkeypatch):
    monkeypatch.setattr(sbc, "BURN_IN", 2)
    monkeypatch.setattr(sbc, "THINNING", 1)
    found = sbc.ranks(sbc.ROWS[name], 1)
    assert found.shape == (1, len(sbc.names(sbc.ROWS[name])))
    assert found.min() >= 0
    assert found.max() <= sbc.DRAWS


def test_the_prior_is_drawn_as_it_is_written():
    """θ* of the level and regression: half of 1/σ²'s law, and one of three columns in."""
    row = sbc.ROWS["level and regression"]
    problem, _, _ = sbc.simulated(row, 0)
    structure, g = sbc.built(row, problem).structure, torch.Generator().manual_seed(0)
    theta = torch.cat([sbc.drawn_prior(structure, g) for _ in range(3000)])
    for j, scale in enumerate(structure.scales):
        assert float(theta[:, j].max()) <= scale.upper
        # Gamma(df/2), cut where σ is at its limit
        gamma = 1 / theta[:, j].square() * scale.df / 2 * scale.guess**2
        least = scale.df / 2 * (scale.guess / scale.upper) ** 2
        law = torch.distributions.Gamma(
            torch.tensor(scale.df / 2).double(), torch.tensor(1.0).double()
        )
        beyond = float(
            (law.cdf(gamma.median()) - law.cdf(torch.tensor(least)))
            / (1 - law.cdf(torch.tensor(least)))
        )
        assert beyond == pytest.approx(0.5, abs=0.04)
    assert float((theta[:, 2:] != 0).double().mean()) == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.slow
def test_a_right_sampler_has_uniform_ranks_and_one_without_noise_has_not():
    assert sbc.worst(sbc.ranks(sbc.ROWS["level and regression"], 150)) > 1e-3
    assert sbc.worst(sbc.ranks(sbc.ROWS["broken: observations drawn without noise"], 150)) < 1e-6


@pytest.mark.slow
def test_one_degree_of_freedom_too_many_is_seen():
    assert sbc.worst(sbc.ranks(sbc.ROWS["broken: one degree of freedom too many"], 500)) < 1e-2
