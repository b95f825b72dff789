"""Ranks of simulation-based calibration: uniform of exact draws, and what they show of draws that
are too narrow or shifted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scripts import sbc


def narrow(problem, seed):
    draws = sbc.exact(problem, seed)
    return draws.mean(0) + 0.5 * (draws - draws.mean(0))


def test_exact_draws_have_uniform_ranks_and_narrow_ones_do_not():
    ranks = sbc.ranks(sbc.exact, 300)
    assert ranks.shape == (300, 4)
    assert min(sbc.summary(ranks[:, i])[p] for i in range(4) for p in ("chi2_p", "ks_p")) > 1e-3
    wrong = sbc.ranks(narrow, 300)
    found = [sbc.summary(wrong[:, i]) for i in range(4)]
    assert all(one["chi2_p"] < 1e-4 for one in found)
    assert all(one["spread"] > 1.2 for one in found[:3])
    assert all(one["coverage90"] < 0.75 for one in found[:3])


def test_exact_draws_are_of_the_conjugate_posterior():
    problem, _ = sbc.simulated(0)
    draws = torch.cat([sbc.exact(problem, seed) for seed in range(40)])
    X, y = sbc.design(problem), problem.train.y[:, 0]
    mean = torch.linalg.solve(torch.eye(3, dtype=torch.float64) + X.T @ X, X.T @ y)
    assert float(((draws.mean(0) - mean) / (draws.std(0) / len(draws) ** 0.5)).abs().max()) < 4
    assert float(sbc.log_joint(mean, problem)) >= float(sbc.log_joint(draws, problem).max())


@pytest.mark.parametrize("name", ["VI, full", "VIS-P 3, SGLD", "AADM α = 0.5"])
def test_every_posterior_has_ranks(name, monkeypatch):
    (fit,) = [f for n, f in sbc.FITS.items() if n.startswith(name) and "SGLD, full" not in n]
    problem, _ = sbc.simulated(1)
    assert fit(problem, 0).shape == (99, 3)


def test_of_uniform_ranks():
    found = sbc.summary(np.arange(100))
    assert found["chi2_p"] == pytest.approx(1.0)
    assert found["spread"] == pytest.approx(1.0, abs=0.01)
    assert found["coverage90"] == pytest.approx(0.9)
