"""ARM, DisARM and ARMS, compared with an enumerated gradient and with each other, and their error
messages."""

import pytest
import torch
from scipy.stats import multivariate_normal, norm
from support.runs.configured import F64, component, double, draw_normal
from support.small.small_bernoulli import (
    binary_rows,
    check_unbiased,
    guide_variance,
    small_dvae,
)
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.gradients.bernoulli.arms import dirichlet, gaussian, joint_lower_probability
from runner.execution.rng import Streams

ARMS = [("arms", {"n_samples": 3, "copula": copula}) for copula in ("dirichlet", "gaussian")]
ANTITHETIC = pytest.mark.parametrize(
    ("name", "keys"), [("arm", {"n_samples": 1}), ("disarm", {"n_samples": 1}), *ARMS]
)


@ANTITHETIC
@pytest.mark.parametrize("layers", [1, 2])
def test_antithetic_gradients_are_unbiased(name, keys, layers):
    problem = binary_rows(n=2)
    estimator = component("gradient", name, **keys)
    check_unbiased(estimator, small_dvae(problem, layers), Rows(problem.train.x, 3.0), 100_000)


def test_disarm_varies_less_than_arm():
    disarm = guide_variance(component("gradient", "disarm"), n=400)
    assert disarm < 0.9 * guide_variance(component("gradient", "arm"), n=400)
    averaged = guide_variance(component("gradient", "disarm", n_samples=8), n=400)
    assert disarm / averaged == pytest.approx(8, rel=0.35)


def test_disarm_is_mean_of_arm_given_pair():
    """E[½ − u | z, z̃] = ½ (z − z̃) σ(|α|), by quadrature over u."""
    arm, disarm = (component("gradient", name, n_samples=1) for name in ("arm", "disarm"))
    u = (torch.arange(200_000, dtype=F64) + 0.5) / 200_000
    for alpha in (-1.7, -0.2, 0.4, 2.5):
        a = torch.full_like(u, alpha)
        z = (u < a.sigmoid()).double()
        other = (1 - u < a.sigmoid()).double()
        for first, second in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)):
            selection = (z == first) & (other == second)
            if selection.any():
                w = [part.weight(u, z, other, a)[selection].mean() for part in (arm, disarm)]
                assert_close(w[0], w[1], rtol=0, atol=2e-5)


def test_arms_with_two_draws_is_disarm():
    """With equal draws and log ratios in both estimators, d_2 = 1 − d_1, so that u_2 = 1 − u_1, and
    1 − ρ = 1 / max(σ(α), σ(−α))."""
    arms = component("gradient", "arms", n_samples=2)
    disarm = component("gradient", "disarm", n_samples=1)
    alpha = torch.linspace(-3, 3, 12, dtype=F64).reshape(1, 4, 3)
    u, z = arms.draw_coupled(alpha, Streams(0))
    assert_close(u.sum(0), torch.ones_like(alpha))
    f = draw_normal(2, 1, 4)
    assert_close(arms.slope(u, z, f, alpha), disarm.slope(u, z, f, alpha), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("copula", ["dirichlet", "gaussian"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_arms_uniforms_have_expected_pair_distribution(copula, n):
    like = torch.zeros((), dtype=F64)
    shape = torch.Size([n, 100_000])
    u = {"dirichlet": dirichlet, "gaussian": gaussian}[copula](shape, like, Streams(0))
    for m in (0.05, 0.2, 0.4, 0.5):
        below = (u < m).double()
        rate = below.mean(1)
        both = (below[0] * below[-1]).mean()
        assert (rate - m).abs().max() < 4 * (m * (1 - m) / 1e5) ** 0.5
        expected = float(joint_lower_probability(copula, double(m), n))
        assert float(both) == pytest.approx(
            expected, abs=4 * (max(expected, 1e-5) / 1e5) ** 0.5 + 2e-4 * (n == 2)
        )
        assert expected < m * m


def test_bivariate_normal_probabilities_match_scipy():
    for n, m in ((3, 0.5), (3, 0.1), (4, 0.02), (8, 0.3)):
        h = norm.ppf(m)
        r = -1 / (n - 1)
        exact = multivariate_normal.cdf([h, h], mean=[0, 0], cov=[[1, r], [r, 1]])
        assert float(joint_lower_probability("gaussian", double(m), n)) == pytest.approx(
            exact, abs=1e-7
        )


def test_arms_varies_less_than_leave_one_out():
    """ARMS also stays finite in single precision when a variable is almost certain."""
    arms, loo = (
        guide_variance(component("gradient", name, n_samples=4), n=400, layers=1)
        for name in ("arms", "vargrad")
    )
    assert arms < 0.8 * loo
    for copula in ("dirichlet", "gaussian"):
        estimator = component("gradient", "arms", copula=copula)
        alpha = torch.tensor([-120.0, -40.0, 0.0, 40.0, 120.0]).reshape(1, 1, 5)
        u, z = estimator.draw_coupled(alpha, Streams(0))
        assert estimator.slope(u, z, torch.randn(4, 1, 1), alpha).isfinite().all()
