"""The truncated Dirichlet process: prior of sticks, mean field compared with enumeration, and the
prior over partitions."""

import itertools
import math

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator, load
from support.small.small_partitions import log_marginal, small_rows
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.models.mixtures.dp_mixture import DpMixtureModule
from components.models.mixtures.gaussian_mixture import GaussianMixtureModule
from components.models.mixtures.stick_ascent import log_shares

ALPHA = 1.7
T = 3
X, PRIOR = small_rows(4)
ROWS = Rows(X, 1.0)
MODULE = DpMixtureModule(1.0, PRIOR, T, ALPHA)


def log_sticks(z):
    """log p(z) of truncated sticks integrated out: Π_{t<T} B(1 + N_t, α + N_>t)/B(1, α)."""

    def log_beta(a, b):
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    size = [sum(k == t for k in z) for t in range(T)]
    return sum(
        log_beta(1 + size[t], ALPHA + sum(size[t + 1 :])) - log_beta(1, ALPHA) for t in range(T - 1)
    )


def log_evidence():
    """log p(x) under the truncated process, over all T^N labels."""
    total = []
    for z in itertools.product(range(T), repeat=len(X)):
        marginals = [log_marginal(X.numpy()[np.array(z) == k], PRIOR) for k in set(z)]
        total.append(log_sticks(z) + sum(marginals))
    return float(np.logaddexp.reduce(total))


def ascend(cycles, starts=3):
    ascent = MODULE.mean_field()
    factors = ascent.start(ROWS, starts, generator(0))
    path = [ascent.objective(factors, ROWS)]
    for _ in range(cycles):
        factors = ascent.cycle(factors, ROWS)
        path.append(ascent.objective(factors, ROWS))
    return ascent, factors, torch.stack(path)


def test_prior_of_weights_equals_stick_breaking():
    theta = MODULE.sample_prior(3, generator(1))
    log_pi, *_ = MODULE.split(theta)
    for k in range(3):
        v = [float(log_pi[k, t].exp() / log_pi[k, t:].exp().sum()) for t in range(T - 1)]

        def shares(eta):  # v of free coordinates η
            pi = torch.cat([eta, eta.new_zeros(1)]).softmax(0)
            return torch.stack([pi[t] / pi[t:].sum() for t in range(T - 1)])

        J = torch.autograd.functional.jacobian(shares, theta[k, : T - 1])
        literal = sum(math.log(ALPHA) + (ALPHA - 1) * math.log(1 - u) for u in v) + float(
            J.det().abs().log()
        )
        # only of the clusters
        flat = float(
            GaussianMixtureModule(1.0, PRIOR, T).log_prior(theta)[k] - log_pi[k].sum()
        ) - math.lgamma(T)
        assert_close(float(MODULE.log_prior(theta)[k]), literal + flat)
    many, *_ = MODULE.split(MODULE.sample_prior(20_000, generator(2)))
    first = many[:, 0].exp()
    assert abs(float(first.mean()) - 1 / (1 + ALPHA)) < 4 * float(first.std()) / 20_000**0.5


def test_bound_is_below_the_evidence_and_never_falls():
    ascent, factors, path = ascend(200)
    assert path.diff(dim=0).min() > -1e-9
    assert path[-1].max() < log_evidence()
    assert path[-1].max() > log_evidence() - 4
    # E_q[log p(x, z, v, μ, Λ) − log q] over draws of θ and all labels
    r = ascent.responsibilities(factors, ROWS)[0]  # the best q(z) given q(θ) [B, T]
    theta = ascent.draw(factors, 50, generator(3))
    joint = MODULE.log_prior(theta)
    each = MODULE.log_components(theta, ROWS)  # [S, B, T]
    joint = joint + (r * (each - r.log())).sum((1, 2))
    bound = joint - log_q(factors, theta)  # q(θ) is at its optimum given q(z): the same at every θ
    assert_close(bound, path[-1, 0].expand(50))


def log_q(factors, theta):
    """log density of q at θ in its free coordinates."""
    log_pi, mu, L = MODULE.split(theta)
    log_s = log_pi.flip(1).logcumsumexp(1).flip(1)
    log_v = log_pi[:, :-1] - log_s[:, :-1]
    log_left = log_s[:, 1:] - log_s[:, :-1]
    a, b = factors["sticks"][0].unbind(1)
    sticks = (a + b).lgamma() - a.lgamma() - b.lgamma() + (a - 1) * log_v + (b - 1) * log_left
    value = (sticks - log_s[:, :-1]).sum(1) + log_pi.sum(1)
    clusters = type(PRIOR)(*(factors[name][0] for name in ("m", "beta", "V", "nu")))
    D = 2
    power = torch.arange(D + 1, 1, -1, dtype=L.dtype)
    jacobian = (power * L.diagonal(dim1=2, dim2=3).log()).sum(2) + D * math.log(2)
    return value + (clusters.log_density(mu, L) + jacobian).sum(1)


def test_order_of_sizes_has_the_highest_bound():
    ascent = MODULE.mean_field()
    size = torch.tensor([0.4, 3.0, 0.6], dtype=X.dtype)
    best = ascent.optimal_factors((size / 4)[None, :, None].expand(1, T, 4), ROWS)
    assert_close(best["nu"][0] - PRIOR.nu, size[[1, 0, 2]])
    assert_close(best["sticks"][0], X.new_tensor([[4.0, ALPHA + 1.0], [1.4, ALPHA + 0.6]]))
    # the larger of the first two sticks precedes, for any last one
    for last in ([], [2]):
        assert log_sticks((0, 0, 0, 1, *last)) > log_sticks((1, 1, 1, 0, *last))


def test_predictive_weights_are_means_of_sticks():
    ascent, factors, _ = ascend(5, 1)
    logs = (factors["sticks"] / factors["sticks"].sum(2, keepdim=True)).log()
    assert_close(float(log_shares(logs).exp().sum()), 1.0)
    theta = ascent.draw(factors, 40_000, generator(5))
    rows = Rows(X[:2] + 0.1, 1.0)
    density = MODULE.log_likelihood(theta, rows).exp()
    exact = ascent.log_predictive(factors, rows)[0].exp()
    assert ((density.mean(0) - exact).abs() < 4 * density.std(0) / 40_000**0.5).all()


def test_constant_column_is_refused():
    problem, rng = load("mixture_sim", n_train=20, n_test=5)
    problem.train.x[:, 1] = 2.0
    with pytest.raises(ConfigMismatchError, match=r"is constant .*; remove it"):
        component("model", "dp_mixture").build(problem, rng)
