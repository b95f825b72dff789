"""Conjugate families compared with scipy's densities, and their draws with known moments."""

import pytest
import torch
from scipy import stats
from support.runs.configured import F64, double, draw_normal, generator, normal
from torch.testing import assert_close

from components.maths.exponential.dirichlet import draw_log_dirichlet, expected_log, kl_dirichlet
from components.maths.exponential.normal_wishart import NormalWishart
from components.models.linear.probit_regression import draw_truncated_normal, truncated_normal_mean


def normal_wishart(seed=0, D=2, nu=6.0, beta=1.7):
    g = generator(seed)
    A = normal(g, D, D)
    V = A @ A.T + torch.eye(D, dtype=F64)
    return NormalWishart(
        normal(g, D),
        double(beta),
        V,
        double(nu),
    )


def many(q, n):
    D = q.dim
    return NormalWishart(q.m.expand(n, D), q.beta.expand(n), q.V.expand(n, D, D), q.nu.expand(n))


def within(values, expected, z=4.5):
    error = values.std(0) / len(values) ** 0.5
    assert ((values.mean(0) - expected).abs() <= z * error + 1e-12).all()


def test_normal_wishart_has_exact_moments_and_divergence():
    q = normal_wishart()
    p = normal_wishart(seed=1, nu=4.5, beta=0.6)
    mu, L = many(q, 20_000).draw(generator(0))
    precision = L @ L.mT
    within(precision.flatten(1), (q.nu * torch.linalg.inv(q.V)).flatten())
    within(torch.linalg.slogdet(precision)[1][:, None], q.expected_log_det())
    within(
        (many(q, 20_000).log_density(mu, L) - many(p, 20_000).log_density(mu, L))[:, None], q.kl(p)
    )
    x = draw_normal(3, 2, seed=2)
    pulled = torch.einsum("nbd,nde->nbe", x - mu[:, None], L).square().sum(2)
    density = (
        torch.linalg.slogdet(L)[1][:, None] - torch.log(torch.tensor(2 * torch.pi)) - 0.5 * pulled
    )
    within(density, q.expected_log_density(x))
    within(density.exp(), q.log_predictive(x).exp())
    W = torch.linalg.inv(q.V).numpy()
    for m, root in zip(mu[:5], L[:5], strict=True):
        Lambda = (root @ root.T).numpy()
        literal = stats.wishart.logpdf(Lambda, 6.0, W) + stats.multivariate_normal.logpdf(
            m.numpy(), q.m.numpy(), torch.linalg.inv(1.7 * root @ root.T).numpy()
        )
        assert float(q.log_density(m, root)) == pytest.approx(literal, rel=1e-9)
    # Bishop (2006), eq. (10.81)
    t = stats.multivariate_t(q.m.numpy(), (q.V * 2.7 / (1.7 * 5.0)).numpy(), df=5.0)
    assert q.log_predictive(x).tolist() == pytest.approx(t.logpdf(x.numpy()).tolist(), rel=1e-9)


def test_rows_give_one_posterior_singly_or_together():
    q = normal_wishart()
    x = draw_normal(4, 2, seed=3)
    together = q.posterior(torch.ones(4, dtype=F64), x)
    turned = q.posterior(torch.ones(4, dtype=F64), x.flip(0))
    by_one = q
    evidence = []
    for row in x:
        evidence.append(by_one.log_predictive(row[None])[0])
        by_one = by_one.posterior(torch.ones(1, dtype=F64), row[None])
    for name in ("m", "beta", "V", "nu"):
        assert_close(vars(by_one)[name], vars(together)[name])
        assert_close(vars(turned)[name], vars(together)[name])
    again = [q.log_predictive(x[3:])[0]]  # the evidence is independent of the order
    again += [
        q.posterior(torch.ones(k, dtype=F64), x[-k:]).log_predictive(x[3 - k : 4 - k])[0]
        for k in (1, 2, 3)
    ]
    assert_close(sum(evidence), sum(again))


def test_dirichlet_has_exact_moments_and_divergence():
    alpha = double([0.3, 2.0, 1.2])
    prior = double([1.0, 0.5, 3.0])
    log_pi = draw_log_dirichlet(alpha.expand(20_000, 3), generator(0))
    within(log_pi, expected_log(alpha))
    within(log_pi.exp(), alpha / alpha.sum())
    p, q = (stats.dirichlet(v.numpy()) for v in (prior, alpha))
    rows = log_pi[:3000].exp().clamp_min(1e-300)
    rows = rows / rows.sum(1, keepdim=True)
    ratio = torch.tensor([q.logpdf(r) - p.logpdf(r) for r in rows.numpy()])
    within(ratio[:, None], kl_dirichlet(alpha, prior))


@pytest.mark.parametrize("f", [2.0, 0.0, -3.0, -12.0, -40.0])
def test_truncated_normal_has_exact_moments(f):
    points = torch.full((20_000,), f, dtype=F64)
    z = draw_truncated_normal(points, generator(0))
    assert (z > 0).all()
    mean = float(stats.truncnorm.mean(-f, float("inf"), loc=f))
    assert float(truncated_normal_mean(points[:1])) == pytest.approx(mean, rel=1e-6)
    assert z.mean() == pytest.approx(mean, rel=0.03)
