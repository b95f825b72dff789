"""The correctness gate: every exact sampler finds the moments of targets with known moments, and
broken samplers do not.

Four targets need no file; the fast tests run the cheapest sampler on all of them and every sampler
on the target with a Jacobian.  The slow tests use posteriordb's files: four of its posteriors at
the same settings, and all eleven at the settings of the study ``posteriordb_table``, through the
runner."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from support.runs.configured import double, generator, normal
from support.targets.sampler_gate import (
    BUILT_IN,
    EMPTY,
    F64,
    InBlocks,
    as_density,
    built_in,
    faults,
    posteriordb,
    sample_problem,
)

from components.datasets.densities.posteriordb import paths, read
from components.datasets.named_target import Variable
from components.datasets.posteriordb_densities import DENSITIES
from components.datasets.posteriordb_densities.gaussian_regressions import GaussianRegression
from components.datasets.posteriordb_densities.scale_priors import flat
from components.inference.hamiltonian import hmc, tree
from components.inference.hamiltonian.mass import Mass
from components.inference.mcmc import adapted_metropolis, importance_sampling
from components.problems.density import Density
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.study.definition import load_study
from runner.study.plan import plan

SAMPLERS: dict[str, dict[str, Any]] = {
    "nuts": {"steps": 750, "chains": 8, "warmup": 250, "mass": "dense", "max_depth": 6},
    "hmc": {
        "steps": 1200,
        "chains": 8,
        "warmup": 400,
        "mass": "dense",
        "trajectory": "jittered",
        "length": 3.0,
        "max_steps": 64,
        "target_acceptance": 0.95,
    },
    "mala": {"steps": 3500, "chains": 8, "warmup": 800},
    "random_walk_mh": {"steps": 14000, "chains": 8, "warmup": 1500},
    "importance_sampling": {"steps": 100, "chains": 100},
}
FAST_TARGET = "gamma"  # the target with a Jacobian that a sampler may omit
FAST_SAMPLER = "importance_sampling"
REFERENCE = [
    "sblri-blr",
    "eight_schools-eight_schools_noncentered",
    "mesquite-logmesquite",
    "gp_pois_regr-gp_regr",
]


def pairs(targets: list[str]) -> list[Any]:
    return [
        pytest.param(s, t, id=f"{s}-{t}", marks=slow_unless(t == FAST_TARGET or s == FAST_SAMPLER))
        for s in SAMPLERS
        for t in targets
    ]


def slow_unless(fast: bool) -> list[pytest.MarkDecorator]:
    return [] if fast else [pytest.mark.slow]


def all_samplers(*fast: str) -> list[Any]:
    """Every sampler; slow tests except for some."""
    return [pytest.param(s, marks=slow_unless(s in fast)) for s in SAMPLERS]


def find_faults(sampler: str, problem: Density, model: Any = None, **settings: Any) -> list[str]:
    draws = sample_problem(sampler, problem, model=model, **(settings or SAMPLERS[sampler]))
    return faults(problem.score(draws, Streams(0)))


@pytest.mark.parametrize(("sampler", "target"), pairs(BUILT_IN))
def test_samplers_match_exact_moments(sampler, target):
    assert find_faults(sampler, built_in(target)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "posterior"), pairs(REFERENCE))
def test_samplers_match_reference_moments(sampler, posterior):
    assert find_faults(sampler, posteriordb(posterior)) == []


# broken samplers
def halve_ratio(monkeypatch, module):
    true = module.metropolis_hastings
    monkeypatch.setattr(
        module,
        "metropolis_hastings",
        lambda value, proposed, *rest: true(0.5 * value, 0.5 * proposed, *rest),
    )


def omit_correction(monkeypatch, module):
    true = module.metropolis_hastings
    monkeypatch.setattr(
        module, "metropolis_hastings", lambda v, w, correction, *rest: true(v, w, 0.0, *rest)
    )


def scale_momenta(monkeypatch, module):
    true = Mass.momentum
    monkeypatch.setattr(
        Mass, "momentum", lambda self, like, generator: 1.2 * true(self, like, generator)
    )


def ignore_energies(monkeypatch, module):
    true = module.acceptance
    monkeypatch.setattr(module, "acceptance", lambda error: true(0.2 * error))


def scale_log_joint(monkeypatch, module):
    true = module.log_joint
    monkeypatch.setattr(
        module, "log_joint", lambda model, theta, batch: 1.2 * true(model, theta, batch)
    )


MUTANTS = {
    "random_walk_mh": (halve_ratio, adapted_metropolis),
    "mala": (omit_correction, adapted_metropolis),
    "hmc": (ignore_energies, hmc),
    "nuts": (scale_momenta, tree),
    "importance_sampling": (scale_log_joint, importance_sampling),
}


@pytest.mark.parametrize("sampler", all_samplers(FAST_SAMPLER, "hmc"))
def test_broken_sampler_is_detected(sampler, monkeypatch):
    mutate, module = MUTANTS[sampler]
    mutate(monkeypatch, module)
    assert any(fault.startswith("z_max") for fault in find_faults(sampler, built_in("regression")))


def test_single_laplace_fit_misses_eight_schools():
    """τ → 0 is far from every mode; the mixture handles this case, and the gate must detect the
    fault."""
    single = SAMPLERS["importance_sampling"] | {"proposal": "student_t", "inflation": 1.3}
    assert find_faults("importance_sampling", built_in("eight schools"), **single) != []


@pytest.mark.parametrize("sampler", all_samplers(FAST_SAMPLER, "nuts"))
def test_lost_jacobian_is_detected(sampler):
    problem = built_in("gamma")
    whole = problem.log_density
    problem.log_density = lambda theta: whole(theta) - theta[:, 0]
    assert any(fault.startswith("z_max") for fault in find_faults(sampler, problem))


# Gibbs, for conditionals with closed forms
GIBBS = {"steps": 900, "chains": 8, "burn_in": 50}


def flat_regression() -> GaussianRegression:
    g = generator(5)
    X = torch.cat([torch.ones(25, 1, dtype=F64), normal(g, 25, 2)], 1)
    y = X @ double([1.0, -0.5, 0.0]) + normal(g, 25)
    return GaussianRegression(
        (Variable("beta", 3),), X, y, flat, ([0.0, 0.0, 0.5], [1.0, 1.0, 0.3])
    )


def test_gibbs_matches_exact_moments():
    posterior = flat_regression()
    problem = as_density(posterior, "regression", posterior.exact_moments())
    assert find_faults("gibbs", problem, InBlocks(problem, posterior), **GIBBS) == []


def test_wrong_gibbs_conditional_is_detected(monkeypatch):
    posterior = flat_regression()
    problem = as_density(posterior, "regression", posterior.exact_moments())
    true = torch._standard_gamma
    monkeypatch.setattr(
        torch, "_standard_gamma", lambda shape, generator: true(shape + 1.0, generator=generator)
    )
    assert any(
        f.startswith("z_max")
        for f in find_faults("gibbs", problem, InBlocks(problem, posterior), **GIBBS)
    )


@pytest.mark.parametrize(
    "posterior", ["kilpisjarvi_mod-kilpisjarvi", "mesquite-logmesquite", "nes2000-nes"]
)
def test_gibbs_matches_reference_moments(posterior):
    problem = posteriordb(posterior)
    data = read(Path(os.environ["RUNNER_DATA_DIR"]) / paths(posterior)[0])
    assert (
        find_faults("gibbs", problem, InBlocks(problem, DENSITIES[posterior](data, EMPTY)), **GIBBS)
        == []
    )


# all eleven, as the study runs them
def cells() -> list[Any]:
    return [
        pytest.param(planned, id=planned.name)
        for planned in plan(load_study("posteriordb_table"), [])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("planned", cells())
def test_gate_study_passes(planned, make_job):
    posteriordb(planned.cell["dataset.posterior"])  # skips without the files
    job = make_job(*planned.overrides, f"data_dir={os.environ['RUNNER_DATA_DIR']}")
    _, result = run(job)
    assert faults({name: values[0] for name, values in result.items()}) == []
