"""The iterated auxiliary filter: its proposals compared with quadrature, its evidence with
Kalman's, and the normaliser of a robust loss with the generalised filter's."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, generator, normal
from support.series.small_sequences import run, run_filter, sequence, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.filtering import iterated
from components.series.filtering.generalised_filter import GeneralisedFilter
from components.series.filtering.twists import Twist, TwistedNormal, fit_log_quadratic
from components.series.models.lgssm import NoiseScales, UnknownScales
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams


def run_generalised(problem, seed=1, **keys):
    inference = component("inference", "generalised_filter", **{"particles": 60, **keys})
    return run(inference, LinearGaussianModule(problem.system), problem, Streams(seed))


def gappy(replicates):
    problem = sequence(system(), 5, replicates)
    problem.observations[::2, 2] = math.nan
    return problem


def errors(problem, **keys):
    exact = run_filter("kalman", problem)
    return run_generalised(problem, loss="kl", **keys).log_normaliser - exact.log_normaliser


def test_proposal_matches_normalised_f_psi():
    A = 1.7
    b = 0.6
    m = 0.3
    k = 0.2
    c = 0.4
    mu = -0.5
    q = 0.8
    M = double([[[-2 * k, -b], [-b, A]]])
    twist = Twist(M, M.new_full((1, 1, 1), m), M.new_tensor(c))
    n = 2_000
    proposal = TwistedNormal(twist, M.new_full((1, n, 1), mu), M.new_tensor([[q]]))
    x = torch.linspace(-12, 12, 10_001, dtype=F64)
    psi = (k + b * (x - m) - 0.5 * A * (x - m).square()).exp() + c
    assert_close(twist.log_value(x.view(1, -1, 1))[0], psi.log())
    f = (-0.5 * (x - mu).square() / q).exp() / math.sqrt(2 * math.pi * q)
    integral = torch.trapezoid(f * psi, x)
    assert_close(proposal.log_mean[0, 0].exp(), integral)
    rows = torch.arange(n).view(1, n)
    draws = proposal.draw(rows, generator(0)).flatten()
    for power in (1, 2, 3):
        moment = torch.trapezoid(f * psi * x**power, x) / integral
        assert abs(z_score(draws**power, moment)) < 4


def test_fit_finds_log_quadratic_without_negative_curvature():
    g = generator(0)
    x = 3 + normal(g, 1, 80, 2)
    curve = torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()
    log_psi = -0.5 * (x @ curve * x).sum(2)
    twist = fit_log_quadratic(x, log_psi)
    assert (twist.log_value(x) - log_psi).std() < 1e-5
    assert_close(twist.M[0, 1:, 1:], curve, rtol=1e-5, atol=1e-5)
    opposite = fit_log_quadratic(x, -log_psi).M[:, 1:, 1:]
    assert torch.linalg.eigvalsh(opposite).min() >= -1e-12


def test_linear_gaussian_evidence_is_exact_without_floor():
    assert errors(gappy(4), proposal="iterated", floor=0.0).abs().max() < 1e-3


def test_default_evidence_has_little_noise():
    problem = sequence(system(), 40, 30)
    assert errors(problem, proposal="iterated", particles=300).std() < 0.18


def test_replicate_keeps_proposal_when_evidence_settles(monkeypatch):
    log_z = iter(double([[0, 0], [0.05, 5], [9, 5.01]]))
    run_pass = GeneralisedFilter._run_pass
    keep = iterated._keep
    calls = []

    def record(*states):
        calls.append((*states[::2], keep(*states)))
        return calls[-1][2]

    monkeypatch.setattr(GeneralisedFilter, "_run_pass", lambda *a: (run_pass(*a)[0], next(log_z)))
    monkeypatch.setattr(iterated, "_keep", record)
    run_generalised(gappy(2), loss="kl", proposal="iterated")
    ((*both, kept),) = calls
    for r, state in enumerate(both):
        assert_close(kept.twists[3].M[r], state.twists[3].M[r])


@pytest.mark.parametrize("below", [0.5, 1.0])
def test_evidence_is_unbiased_with_less_noise(below):
    problem = gappy(200)
    error = errors(problem, proposal="iterated", floor=0.02, resample_below=below)
    assert abs(z_score(error.exp(), torch.tensor(1.0))) < 4
    assert error.var() < 0.05 * errors(problem).var()


def test_weight_not_divided_by_psi_is_detected(monkeypatch):
    monkeypatch.setattr(Twist, "log_value", lambda self, x: x.new_zeros(x.shape[:2]).double())
    error = errors(gappy(200), proposal="iterated", floor=0.02)
    assert abs(z_score(error.exp(), torch.tensor(1.0))) > 6


def test_means_tend_to_kalman():
    problem = sequence(system(), 4, 12)
    exact = run_filter("kalman", problem)
    result = run_generalised(problem, loss="kl", proposal="iterated", floor=0.3, particles=2000)
    for name in ("mean", "predicted"):
        assert z_score(getattr(result, name), getattr(exact, name)[0]).abs().max() < 4.5


@pytest.mark.parametrize(
    ("n", "keys"),
    [(100, {"loss": "beta", "beta": 0.3, "floor": 1.0}), (300, {"loss": "huber"})],
)
def test_robust_loss_has_less_noisy_normaliser(n, keys):
    few, many = (sequence(system(), 5, replicates) for replicates in (4, 150))
    for problem in (few, many):
        problem.observations[:, 2] += 8.0
    exact = run_generalised(few, particles=10_000, **keys).log_normaliser
    log_normaliser = run_generalised(many, proposal="iterated", particles=n, **keys).log_normaliser
    ratios = (log_normaliser - exact.mean()).exp()
    ones = (exact - exact.mean()).exp()
    noise = (ratios.var() / len(ratios) + ones.var() / len(ones)).sqrt()
    assert (ratios.mean() - ones.mean()).abs() < 4 * noise
    assert (
        log_normaliser.var() < 0.5 * run_generalised(many, particles=n, **keys).log_normaliser.var()
    )


def test_every_parameter_set_has_its_own_proposal():
    problem = sequence(system(), 4, 3)
    prior = {"law": "half_normal", "scale": 1.0}
    unknown = UnknownScales(problem.system, NoiseScales(observation_sd=prior, state_sd=prior))
    model = unknown.at(torch.tensor([[0.1, 0.3], [-0.4, 0.2], [0.5, -0.6]]).double())
    keys = {"loss": "kl", "proposal": "iterated", "floor": 0.0, "particles": 80}
    result = run_filter("generalised_filter", problem, model, seed=1, **keys)
    exact = run_filter("kalman", problem, model)
    assert (result.log_normaliser - exact.log_normaliser).abs().max() < 1e-3
