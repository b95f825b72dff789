"""Checks of chains and weighted draws: R̂, ESS, energy, acceptance, Pareto k."""

import math
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component, generator, normal
from support.targets.known_targets import F64

from components.contracts.roles import FinishedRun
from components.evaluation.run_checks import run_checks
from components.metrics import limits
from components.metrics.diagnostics import convergence
from components.posteriors.draws import Draws
from components.posteriors.mixing import draws_checks
from runner.execution.rng import Streams

WELL = {
    "rhat": 1.003,
    "ess": 900.0,
    "ess_tail": 700.0,
    "e_bfmi": 0.8,
    "divergences": 0.0,
}


STUCK = 0.02  # acceptance rate of a chain that hardly moves


def draws(n=500, chains=4, replicates=1, energy=True, least=0.8):
    """Draws at zero; the last chain accepts with rate ``least``, the others with 0.8."""
    rate = torch.full((chains * replicates, n), 0.8)
    rate[-1] = least
    stats = {"acceptance_rate": rate} | ({"energy": torch.zeros_like(rate)} if energy else {})
    zeros = torch.zeros(chains * replicates, n, 2, dtype=F64)
    return Draws(zeros, zeros[:, 0], stats=stats, replicates=replicates)


def verdicts(checks):
    return {check.name: check.passed for check in checks}


def test_mixed_chains_pass_every_check():
    assert list(verdicts(draws_checks(draws(), WELL)).values()) == [True] * 6


@pytest.mark.parametrize(
    ("name", "value", "failing"),
    [
        ("rhat", 1.011, "R̂ is below 1.01"),
        ("rhat", math.inf, "R̂ is below 1.01"),
        ("rhat", math.nan, "R̂ is below 1.01"),
        ("ess", 399.0, "bulk ESS is above 100 per chain"),  # of four chains
        ("ess_tail", 399.0, "tail ESS is above 100 per chain"),
        ("e_bfmi", 0.29, "E-BFMI is above 0.3"),
        ("divergences", 1.0, "no transition diverges"),
    ],
)
@pytest.mark.parametrize("replicates", [1, 3])
def test_each_chain_check_fails_separately(name, value, failing, replicates):
    scores = {k: v if replicates == 1 else [v] * replicates for k, v in WELL.items()}
    # the worst replicate decides
    scores[name] = value if replicates == 1 else [WELL[name], value, WELL[name]]
    failed = [c for c in draws_checks(draws(replicates=replicates), scores) if not c.passed]
    assert [check.name for check in failed] == [failing]
    # chains that are stuck (NaN), diverge or lose energy need more than steps
    assert failed[0].is_short is (failing[0] in "R̂bt" and not math.isnan(value))


@pytest.mark.parametrize(
    ("energy", "least", "passed"),
    [
        (True, 0.7, True),
        (True, 0.234, False),
        (True, STUCK, False),
        (False, 0.234, True),
        (False, STUCK, False),
    ],
)
@pytest.mark.parametrize("replicates", [1, 3])
def test_acceptance_check_uses_worst_chain(energy, least, passed, replicates):
    scores = {name: [value] * replicates for name, value in WELL.items()}
    checks = draws_checks(
        draws(chains=16, energy=energy, least=least, replicates=replicates), scores
    )
    assert verdicts(checks)["enough proposals are accepted"] is passed


def test_few_draws_or_chains_are_not_checked():
    checks = draws_checks(draws(n=3, energy=False), {})
    assert [check.passed for check in checks] == [None, None, True]
    assert "3 draws per chain, 4 required" in checks[0].detail
    reference = draws_checks(draws(chains=1, energy=False), {"ess": 500.0, "ess_tail": 500.0})
    assert [check.passed for check in reference] == [None, True, True, True]


def test_constant_and_worst_coordinates_are_named():
    g = generator(0)
    values = normal(g, 4, 400, 6)
    values[..., 1:5] = 0.0  # point masses: constant coordinates
    values[..., 5] += torch.arange(4.0)[:, None]
    samples = Draws(values, values[:, 0], ["a", "b", "c", "d", "e", "f"])
    scores, _ = convergence(samples)
    (rhat, bulk, _) = draws_checks(samples, scores)
    assert rhat.passed is False
    assert "(f), the largest" in rhat.detail
    assert "constant coordinates: b, c, d and 1 more" in rhat.detail
    assert "(f), the smallest" in bulk.detail
    values[..., 5] = values[..., 0]
    samples = Draws(values, values[:, 0], samples.names)
    assert all(check.passed for check in draws_checks(samples, convergence(samples)[0]))
    still = Draws(torch.zeros(4, 400, 1, dtype=F64), torch.zeros(4, 1, dtype=F64), ["a"])
    failed = draws_checks(still, convergence(still)[0])
    assert {check.passed for check in failed} == {False}
    assert "no chain moved" in failed[0].detail


@pytest.mark.parametrize(
    ("k", "n", "passed"), [(0.69, 10_000, True), (0.71, 10_000, False), (0.55, 100, False)]
)
def test_pareto_k_limit_is_lower_for_few_weights(k, n, passed):
    weighted = Draws(torch.zeros(1, n, 1), torch.zeros(1, 1), log_weights=torch.zeros(1, n))
    (check,) = draws_checks(weighted, {"pareto_k": k, "weight_ess": 50.0})
    assert check.passed is passed
    assert limits.pareto_k(100) == pytest.approx(0.5)


def finished_run(method, scores):
    method = component("inference", method)
    return FinishedRun(SimpleNamespace(), draws(), method, None, scores, [], Streams(0))


def test_svgd_skips_chain_checks():
    assert draws().checks(finished_run("svgd", WELL)) == []


def test_smoke_run_skips_length_checks():
    checks = run_checks(finished_run("sgld", WELL | {"rhat": 3.0}), smoke=True)
    assert [check.passed for check in checks] == [True, None]
