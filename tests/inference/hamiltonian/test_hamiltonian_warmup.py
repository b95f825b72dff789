import math

import pytest
import torch
from support.runs.configured import component, double, generator, normal
from support.targets.known_targets import (
    F64,
    GaussianTarget,
    correlated_gaussian,
    run_chains,
    sample_target,
    walk,
    white,
    z_score,
)
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.hamiltonian import chees
from components.inference.hamiltonian.adaptation import (
    DualAveraging,
    Scatter,
    find_reasonable_step,
    last_search_step,
    windows,
)
from components.inference.hamiltonian.leapfrog import Phase, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.inference.log_joint import value_and_gradient
from components.metrics.diagnostics import split_rhat
from runner.execution.execute import run


def test_windows_match_stan():
    stan = {
        1000: (75, [100, 150, 250, 450, 950]),
        500: (75, [100, 150, 250, 450]),
        100: (15, [90]),
        19: (0, []),
    }
    assert {warmup: windows(warmup) for warmup in stan} == stan
    for warmup in range(20, 700, 7):
        initial, ends = windows(warmup)
        edges = [initial, *ends, warmup]
        assert edges == sorted(set(edges))


def test_dual_averaging_matches_equation_6():
    rates = [0.3, 0.9, 0.55, 1.0, 0.0, 0.7]
    state = DualAveraging.around(0.2)
    mu = math.log(2.0)
    log_average = None
    for m in range(1, len(rates) + 1):
        state = state.learnt(rates[m - 1], 0.8)
        log_step = mu - math.sqrt(m) / 0.05 / (m + 10) * sum(0.8 - a for a in rates[:m])
        eta = m**-0.75
        log_average = log_step if m == 1 else eta * log_step + (1 - eta) * log_average
        assert state.log_step == pytest.approx(log_step)
        assert state.log_average == pytest.approx(log_average)


@pytest.mark.parametrize("dense", [False, True])
def test_scatter_is_covariance_of_pooled_states(dense):
    g = generator(0)
    states = [3 + normal(g, 4, 3) for _ in range(5)]
    scatter = Scatter.none(states[0], dense)
    for theta in states:
        scatter = scatter.with_states(theta)
    whole = torch.cat(states)
    shrunk = 20 / 25 * whole.T.cov() + 1e-3 * 5 / 25 * torch.diag(whole.T.cov().diagonal())
    assert_close(scatter.mean, whole.mean(0))
    assert_close(scatter.covariance(), shrunk if dense else shrunk.diagonal())


def test_reasonable_step_crosses_acceptance_of_half():
    target = correlated_gaussian()
    mass = Mass.of(torch.ones(2, dtype=F64))
    theta = target.sample_prior(50, generator(0))
    z = Phase(theta, theta, *value_and_gradient(target, theta, None))
    step_sizes = {
        e: find_reasonable_step(target, None, mass, e, z, generator(1)) for e in (1e-4, 30.0)
    }
    assert 0.3 < step_sizes[1e-4] < 3
    assert 0.3 < step_sizes[30.0] < 3


def test_density_without_suitable_step_size_is_refused():
    class Cliff(GaussianTarget):
        def log_prior(self, theta):
            at_start = theta.detach() == self.begun
            return super().log_prior(theta) + 1e12 * torch.where(at_start, 0.0, -1.0).sum(1)

        def sample_prior(self, n, generator):
            self.begun = super().sample_prior(n, generator)
            return self.begun

    nuts = component("inference", "nuts", chains=4)
    with pytest.raises(NumericalError, match=r"step size.*start"):
        run_chains(nuts, Cliff(torch.zeros(1, dtype=F64), torch.eye(1, dtype=F64)), 1)


@pytest.mark.parametrize("name", ["hmc", "nuts"])
def test_warm_up_adapts_and_then_stops(name):
    target = correlated_gaussian(0.9)
    keys = {"mass": "dense", "target_acceptance": 0.85}
    sampler = component("inference", name, chains=30, warmup=220, **keys)
    path = list(walk(sampler, target, 260))
    settings = [(state.tuning, state.length) for state, _ in path]
    fixed, length = settings[219]
    assert all(t is fixed and used == length for t, used in settings[219:])
    assert settings[218][0].step_size != fixed.step_size
    assert_close(fixed.mass.inverse, target.covariance, rtol=0.25, atol=0.02)
    rate = sum(float(info["acceptance_rate"]) for _, info in path[220:]) / 40
    # chees targets the harmonic mean, which is below the mean checked here
    assert 0.78 < rate < 0.97
    draws = sampler.posterior(path[-1][0])
    assert draws.n_draws == 40
    assert draws.stats["step_size"].unique().tolist() == [fixed.step_size]


def test_no_warm_up_adapts_nothing():
    hmc = component("inference", "hmc", warmup=0, step_size=0.3, trajectory="jittered")
    path = list(walk(hmc, correlated_gaussian(), 5))
    assert {info["step_size"] for _, info in path} == {0.3}
    assert torch.equal(path[-1][0].tuning.mass.inverse, torch.ones(2, dtype=F64))


def test_halton_points_match_definition():
    assert [chees.halton(m) for m in range(1, 8)] == [0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875]


def ends(t, eps, C, seed):
    """Starts and ends of trajectories of N(0, I₃) of length t, with a mass that is not the
    identity."""
    target = white(3)
    mass = Mass.of(torch.ones(3, dtype=F64))
    g = generator(seed)
    theta = normal(g, C, 3)
    z = Phase(theta, mass.momentum(theta, g), *value_and_gradient(target, theta, None))
    return z, leapfrog(target, None, mass, eps, z, round(t / eps)), mass


def test_chees_gradient_matches_formula():
    z, after, _ = ends(1.0, 0.25, 5, 0)
    mass = Mass.of(double([[0.7, 0.5, 0.0], [0.5, 1.8, 0.1], [0.0, 0.1, 0.4]]))
    rate = double([1.0, 0.2, 0.0, 0.7, 0.4])
    M = torch.linalg.inv(mass.inverse)
    a = after.theta - rate @ after.theta / rate.sum()
    b = z.theta - z.theta.mean(0)
    ahead = (a @ M * a).sum(1)
    behind = (b @ M * b).sum(1)
    velocity = (a @ M * (after.r @ mass.inverse)).sum(1)
    literal = (rate * 1.0 * (ahead - behind) * velocity).mean() / behind.mean() ** 2
    assert chees.slope(z, after, rate, mass, 1.0) == pytest.approx(float(literal))


@pytest.mark.parametrize("t", [0.8, 1.5, 2.2])
def test_chees_gradient_matches_derivative(t):
    """For N(0, I_P) and exact dynamics ChEES(t) = P sin² t, with derivative t P sin 2t in log t;
    E‖θ − θ̄‖² = P."""
    slopes = []
    for seed in range(30):
        z, after, mass = ends(t, t / 40, 1000, seed)
        slopes.append(chees.slope(z, after, torch.ones(1000, dtype=F64), mass, t))
    assert abs(z_score(torch.tensor(slopes), t * math.sin(2 * t) / 3)) < 4


def test_length_grows_up_to_its_maximum():
    length = chees.Length.of(1.0)
    for _ in range(40):
        length = length.learnt(5.0, 2.0)
    assert math.exp(length.log_length) == pytest.approx(2.0)
    assert length.learnt(math.nan, 2.0) == length
    first = chees.Length.of(1.0).learnt(-3.0, 2.0)
    # Adam's first step, for any size of the gradient
    assert first.log_length == pytest.approx(-0.05)
    assert math.exp(length.stretch(3.0).log_length) == pytest.approx(6.0)


def test_length_follows_adam_with_clipped_gradients():
    gradients = [0.3, -0.1, 1e6, 0.2, -1e9, 0.4]
    length = chees.Length.of(1.0)
    log_length = 0.0
    squares = []
    for m, g in enumerate(gradients, start=1):
        if m > 1:
            rms = math.sqrt(
                sum(0.05 * 0.95 ** (m - 2 - i) * s for i, s in enumerate(squares))
                / (1 - 0.95 ** (m - 1))
            )
            g = max(-3 * rms, min(3 * rms, g))
        squares.append(g * g)
        second = sum(0.05 * 0.95 ** (m - 1 - i) * s for i, s in enumerate(squares)) / (1 - 0.95**m)
        log_length += 0.05 * g / math.sqrt(second)
        length = length.learnt(gradients[m - 1], 1e3)
        assert length.log_length == pytest.approx(log_length)


@pytest.mark.parametrize(
    ("keys", "step_sizes", "counts"),
    [  # warm-up 500, length 1.57; counts at steps 1, 75, 76, 250 and 251
        ({}, (0.2, 0.1), [16, 16, 2, 2, 2]),
        ({}, (9.0, 0.1), [90, 90, 90, 90, 90]),
        ({}, (0.002, 0.001), [32, 32, 2, 2, 2]),
        ({"trajectory": "jittered"}, (9.0, 0.1), [64, 64, 64, 64, 90]),
        ({"trajectory": "jittered", "mass": "identity"}, (9.0, 0.1), [90, 90, 90, 90, 90]),
        ({"max_steps": 7}, (0.002, 0.001), [7, 7, 2, 2, 2]),
    ],
)
def test_steps_are_bounded_during_search(keys, step_sizes, counts):
    hmc = component("inference", "hmc", **keys)
    assert [hmc.count_steps(*step_sizes, t) for t in (1, 75, 76, 250, 251)] == counts
    assert [last_search_step(warmup) for warmup in (19, 100, 500, 1000)] == [0, 15, 250, 450]


def make_stiff():
    """Scales of 0.1 to 1 with correlations, and chains that start 100 standard deviations away."""
    scales = torch.logspace(-1, 0, 4, dtype=F64)
    unit = 0.9 ** (torch.arange(4)[:, None] - torch.arange(4)).abs().double()
    return GaussianTarget(torch.zeros(4, dtype=F64), scales[:, None] * unit * scales, spread=10.0)


def test_chees_converges_from_distant_starts():
    draws = sample_target("hmc", make_stiff(), 300, chains=10, warmup=150)
    assert split_rhat(draws.draws).max() < 1.03


REGRESSIONS = {
    "linear_simulation": ["dataset=linear_simulation", "model=linear_regression"],
    "diabetes": ["dataset=diabetes", "model=linear_regression"],
    "ten columns": [
        "dataset=linear_simulation",
        "dataset.beta=[3,1,0,0,2,0,0,0,1,1]",
        "model=linear_regression",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_defaults_converge_on_linear_regressions(make_job, name, seed):
    """R̂ was 2.9 to 7.8 here when T did not grow beyond one step (a557164d)."""
    _, result = run(make_job(*REGRESSIONS[name], "inference=hmc", "steps=1500", f"seed={seed}"))
    assert result["rhat"][0] <= 1.01


def test_chees_finds_optimal_length_for_gaussian():
    """ChEES averaged over h in (0, 1) is largest at tan 2T = 2T, T = 2.25; leapfrog at large steps
    shifts it down."""
    target = white(20)
    hmc = component("inference", "hmc", chains=100, warmup=300, target_acceptance=0.95)
    state, _ = run_chains(hmc, target, 300)
    assert 1.8 < math.exp(state.length.log_length) < 2.6
