"""hmc and nuts find exact moments and leave distributions invariant; variants with a mistake do
not."""

from __future__ import annotations

import pytest
import torch
from support.runs.configured import F64, component
from support.targets.known_targets import (
    ExactGamma,
    Funnel,
    GammaTarget,
    PriorAlone,
    correlated_gaussian,
    moment_z,
    run_chains,
    sample_target,
)
from support.targets.rank_test import NormalGamma, Rows, rank_p, two_sample_p
from torch.testing import assert_close

from components.inference.hamiltonian import hmc, tree
from components.inference.hamiltonian.mass import Mass

FIXED = {"warmup": 0, "mass": "identity"}
FIXED_LENGTH = FIXED | {"trajectory": "fixed"}
STATS = {"lp", "diverging", "acceptance_rate", "energy", "n_steps", "step_size"}
SETTINGS = [
    ("hmc", 350, {"warmup": 150, "trajectory": "fixed", "mass": "diagonal"}),
    ("hmc", 350, {"warmup": 150, "trajectory": "jittered", "mass": "dense"}),
    ("hmc", 350, {"warmup": 150, "trajectory": "chees", "mass": "dense"}),
    ("nuts", 180, {"warmup": 80, "mass": "diagonal"}),
    ("nuts", 180, {"warmup": 80, "mass": "dense"}),
]


@pytest.mark.parametrize(("name", "steps", "keys"), SETTINGS)
@pytest.mark.parametrize("target", [correlated_gaussian(), GammaTarget(), Funnel()])
def test_moments_are_exact(target, name, steps, keys):
    draws = sample_target(name, target, steps, chains=200, **keys)
    assert moment_z(draws, target) < 4
    assert draws.stats.keys() == STATS | ({"tree_depth"} if name == "nuts" else set())
    assert_close(draws.stats["lp"][:, -1], target.log_prior(draws.draws[:, -1]))


@pytest.mark.parametrize(("name", "steps"), [("hmc", 120), ("nuts", 70)])
@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_precision_matches_target(dtype, name, steps):
    target = correlated_gaussian().to(dtype)
    draws = sample_target(name, target, steps, chains=100, warmup=steps - 50, mass="dense")
    assert draws.draws.dtype == draws.stats["energy"].dtype == dtype
    assert moment_z(draws, target) < 4


# broken variants: module, name and replacement
MUTANTS = {
    "hmc": {
        "wrong sign": (hmc, "acceptance", lambda error: error.exp().clamp(max=1.0)),
        "no energy": (hmc, "acceptance", torch.ones_like),
    },
    "nuts": {
        "wrong sign": (tree, "energy_error", lambda after, before: before - after),
        "no energy": (tree, "energy_error", lambda after, before: torch.zeros_like(after)),
    },
}
OF_MASSES = {
    "stale momenta": (Mass, "momentum", lambda self, like, generator: torch.ones_like(like)),
    "wrong mass": (Mass, "kinetic", lambda self, r, velocity=None: (r * r).sum(-1)),
    "loud momenta": (
        Mass,
        "momentum",
        lambda self, like, g: 1.3 * torch.randn(like.shape, generator=g, dtype=like.dtype),
    ),
}
# steps with large energy errors, so that the accept step matters
COARSE = {
    "hmc": {"steps": 100, "step_size": 0.5, "length": 1.0, **FIXED_LENGTH},
    "nuts": {"steps": 60, "step_size": 0.55, **FIXED},
}
KERNELS = {
    "hmc": lambda: rank_p(
        "hmc", NormalGamma(), replications=2000, length=6, step_size=0.4, **FIXED_LENGTH
    ),
    "nuts": lambda: two_sample_p(
        "nuts", Joint(), replications=1500, steps=4, step_size=0.5, max_depth=6, **FIXED
    ),
}


def coarse_z(name, jacobian=True):
    target = ExactGamma(6.0, jacobian=jacobian)
    return moment_z(sample_target(name, target, chains=400, **COARSE[name]), target)


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("mutant", ["wrong sign", "no energy", "stale momenta", "wrong mass"])
def test_mutants_fail_moment_check(name, mutant, monkeypatch):
    monkeypatch.setattr(*(MUTANTS[name] | OF_MASSES)[mutant])
    assert not coarse_z(name) < 6


@pytest.mark.parametrize("name", MUTANTS)
def test_coarse_steps_detect_lost_jacobian(name):
    assert coarse_z(name) < 4
    assert coarse_z(name, jacobian=False) > 6


class Joint(PriorAlone):
    """(θ, y) of NormalGamma as one density over six coordinates, with exact draws."""

    names: list = []

    def __init__(self):
        self.model = NormalGamma()
        self.dim = 2 + self.model.rows

    def sample_prior(self, n, generator):
        theta = self.model.sample_prior(n, generator)
        return torch.cat([theta, self.model.sample_data(theta, generator).y], 1)

    def sample_data(self, theta, generator):
        return Rows(theta.new_zeros(len(theta), 0))

    def log_prior(self, theta):
        inputs = theta[:, :2]
        rows = Rows(theta[:, 2:])
        return self.model.log_prior(inputs) + self.model.log_likelihood(inputs, rows).sum(1)


@pytest.mark.parametrize("name", KERNELS)
def test_only_correct_kernels_leave_target_invariant(name, monkeypatch):
    assert KERNELS[name]() > 1e-3
    for mutant in ("no energy", "loud momenta"):
        with monkeypatch.context() as m:
            m.setattr(*(MUTANTS[name] | OF_MASSES)[mutant])
            assert KERNELS[name]() < 1e-3


@pytest.mark.parametrize(
    ("name", "steps", "keys"),
    [
        ("hmc", 5, {"step_size": 4.0, "length": 20.0, **FIXED_LENGTH}),
        ("nuts", 3, {"step_size": 60.0, **FIXED}),
    ],
)
def test_divergences_are_counted_and_rejected(name, steps, keys):
    sampler = component("inference", name, chains=50, **keys)
    state, info = run_chains(sampler, correlated_gaussian(), steps)
    draws = sampler.posterior(state)
    assert info["divergences"] == draws.stats["diverging"].sum() == 50 * steps
    assert torch.equal(draws.draws[:, -1], state.start)
    if name == "hmc":
        assert draws.stats["acceptance_rate"].sum() == 0
    else:
        assert draws.stats["n_steps"].unique().tolist() == [1]
        assert draws.stats["tree_depth"].unique().tolist() == [0]
