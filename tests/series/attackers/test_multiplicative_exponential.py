import math

import pytest
import torch
from support.runs.configured import F64, component, generator, load, normal
from support.series.small_sequences import run
from support.targets.known_targets import z_score

from components.contracts.sequences import Clean
from components.errors import ConfigMismatchError
from runner.execution.rng import Streams


def attack(seed=0, **keys):
    problem, rng = load("wiener_velocity", seed, replicates=60, n_steps=500)
    return problem, problem.attack(component("attacker", "multiplicative_exponential", **keys), rng)


def test_factor_multiplies_the_noise_and_not_the_observation():
    clean, hit = attack(probability=0.2, scale=7.0)
    struck = hit.is_corrupted
    assert abs(z_score(struck.flatten().double(), 0.2)) < 4
    errors = (clean.observations - clean.means)[struck]
    after = (hit.observations - clean.means)[struck]
    factor = after / errors  # depends only on ε
    # one for all coordinates
    torch.testing.assert_close(factor[:, 0], factor[:, 1], rtol=1e-6, atol=1e-8)
    xi = factor[:, 0]
    assert (xi > 0).all()
    assert abs(z_score(xi, 7.0)) < 4
    assert abs(z_score(xi.square(), 2 * 49.0)) < 4
    for q in (0.1, 0.5, 0.9):  # quantiles: P(ξ <= −s log(1 − q)) = q
        assert abs(z_score((xi <= -7.0 * math.log(1 - q)).double(), q)) < 4
    # independent of the clean noise
    assert abs(z_score((xi - 7.0) * (errors[:, 0].square() - 1), 0.0)) < 4
    assert torch.equal(hit.observations[~struck], clean.observations[~struck])


def test_attack_requires_the_noise():
    problem, rng = load("wiener_velocity", n_steps=10)
    with pytest.raises(ConfigMismatchError, match=r"unknown .*; use a simulated dataset"):
        component("attacker", "multiplicative_exponential").corrupt(
            Clean(problem.observations), rng
        )


def dense(epsilon, Sigma, rate, scale):
    """(1 − p_c) N(ε | 0, Σ) + p_c ∫ Exp(ξ) N(ε | 0, ξ² Σ) dξ, by sums over ξ on a fine grid in log
    ξ."""
    log_xi = torch.linspace(-60, 12, 200_001, dtype=F64)
    xi = log_xi.exp()
    weight = (-xi / scale).exp() / scale * xi * (log_xi[1] - log_xi[0])
    r2 = float(epsilon @ torch.linalg.solve(Sigma, epsilon))
    height = 1 / math.sqrt((2 * math.pi) ** len(epsilon) * float(Sigma.det()))
    blown = (weight * xi ** -float(len(epsilon)) * torch.exp(-0.5 * r2 / xi.square())).sum()
    return height * ((1 - rate) * math.exp(-0.5 * r2) + rate * float(blown))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_law_is_the_integral_over_every_factor(d):
    g = generator(d)
    root = normal(g, d, d)
    Sigma = root @ root.T + 0.1 * torch.eye(d, dtype=F64)
    for rate, scale in ((0.1, 1000.0), (0.7, 5.0), (1.0, 0.3)):
        attacker = component(
            "attacker", "multiplicative_exponential", probability=rate, scale=scale
        )
        for size in (1e-3, 0.3, 4.0, 300.0):
            epsilon = size * normal(g, d)
            got = float(attacker.log_noise_density(epsilon, Sigma))
            expected = dense(epsilon, Sigma, rate, scale)
            if expected > 1e-280:
                assert got == pytest.approx(math.log(expected), abs=1e-8)
    assert math.isfinite(float(attacker.log_noise_density(torch.zeros(d, dtype=F64), Sigma)))
    assert math.isfinite(float(attacker.log_noise_density(torch.full((d,), 1e6, dtype=F64), Sigma)))


def test_law_is_normalised_and_matches_its_draws():
    clean, hit = attack(probability=0.4, scale=7.0)
    z = torch.linspace(-60, 8, 200_001, dtype=F64).exp()
    Sigma = clean.system.Sigma[:1, :1]
    density = hit.attacker.log_noise_density(z.unsqueeze(-1), Sigma).exp()
    mass = torch.cumulative_trapezoid(2 * density * z, dx=68 / 200_000)
    assert float(mass[-1]) == pytest.approx(1, abs=1e-6)
    noise = (hit.observations - hit.means)[..., 0].abs().flatten()
    for below in (0.05, 0.5, 2.0, 10.0, 40.0):
        share = float(mass[int((z < below).sum()) - 1])
        assert abs(z_score((noise < below).double(), share)) < 4


@pytest.mark.slow  # 5 s
def test_oracle_filter_uses_the_law():
    clean, rng = load("wiener_velocity", replicates=5, n_steps=40)
    hit = clean.attack(
        component("attacker", "multiplicative_exponential", probability=0.3, scale=50.0), rng
    )
    model = component("model", "linear_gaussian_ssm").build(hit, rng)
    oracle, plain = (
        run(component("inference", name), model, hit, Streams(1))
        for name in ("oracle", "bootstrap_filter")
    )
    assert oracle.evidence
    assert (oracle.log_normaliser > plain.log_normaliser).all()
    assert hit.score(oracle, rng)["nmse"].median() < 0.5 * hit.score(plain, rng)["nmse"].median()
