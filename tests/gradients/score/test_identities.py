"""Equations of Boustati (2021), chapter 5, evaluated literally."""

import pytest
import torch
from support.runs.configured import component
from support.small.unlabelled_problems import ppca, real_rows
from support.targets.bernoulli_by_hand import SmallBernoulli, exact_elbo, flat, log_ratio, rows
from torch.autograd import grad
from torch.testing import assert_close

from components.gradients.score.log_ratio import sample_guide
from components.gradients.score.reinforce_cv import coefficient, per_draw_scores
from runner.execution.rng import Streams

S = 4
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def guide_part(module, gradients, guide=None):
    names = [name for name, _ in module.named_parameters()]
    guide = module.guide if guide is None else guide
    return flat([g for name, g in zip(names, gradients, strict=True) if name in guide])


def guide_parameters(module):
    return [p for name, p in module.named_parameters() if name in module.guide]


def scores(module, log_q):
    """∇_φ log q of each entry [n] -> [n, P]."""
    return torch.stack([flat(grad(v, guide_parameters(module), retain_graph=True)) for v in log_q])


@pytest.fixture
def module():
    return SmallBernoulli(seed=3)


def test_log_variance_gradient_at_q_is_kl_gradient(module):
    """Proposition 5.3.2, eq. (5.7); by Remark 5.3.3 it fails if r = q is set before
    differentiation."""
    batch = rows()
    log_q, f = log_ratio(module, batch)

    def loss(r):
        return 0.5 * ((r * f.square()).sum() - (r * f).sum().square())

    kl = flat(grad(-exact_elbo(module, batch), guide_parameters(module), retain_graph=True))
    after = flat(grad(loss(log_q.exp().detach()), guide_parameters(module), retain_graph=True))
    gradients_before = flat(grad(loss(log_q.exp()), guide_parameters(module)))
    assert_close(after, kl, **EXACT)
    assert (gradients_before - kl).abs().max() > 0.1


def test_vargrad_is_equation_5_10_and_leave_one_out(module):
    batch = rows()
    estimator = component("gradient", "vargrad", n_samples=S)
    gradients, terms, _ = estimator.estimate(module, batch, Streams(0), None)
    draws = sample_guide(module, batch, S, Streams(0).noise)
    # [S], [S, P]
    f = draws.f[:, 0]
    h = scores(module, draws.log_q[:, 0])
    printed = ((f[:, None] * h).sum(0) - f.mean() * h.sum(0)) / (S - 1)  # (5.3), (5.10): of KL
    assert_close(guide_part(module, gradients), -printed, **EXACT)
    left_out = ((f - (f.sum() - f) / (S - 1))[:, None] * h).mean(0)
    assert_close(printed, left_out, **EXACT)
    controlled = (f[:, None] * h).mean(0) - f.mean() * h.mean(0)  # (5.11) with a = f̄
    assert_close(printed, S / (S - 1) * controlled, **EXACT)
    assert float(terms["elbo"]) == pytest.approx(-float(f.mean()), abs=1e-12)


def test_reinforce_matches_equation_5_2(module):
    batch = rows(n=3, scale=2.0)
    estimator = component("gradient", "reinforce", n_samples=S)
    gradients, _, _ = estimator.estimate(module, batch, Streams(0), None)
    draws = sample_guide(module, batch, S, Streams(0).noise)
    rows_of_draws = zip(draws.f.T, draws.log_q.T, strict=True)
    printed = sum((f[:, None] * scores(module, log_q)).mean(0) for f, log_q in rows_of_draws)
    assert_close(guide_part(module, gradients), -2.0 * printed, **EXACT)


@pytest.mark.parametrize("name", ["reinforce", "vargrad"])
def test_batch_sum_multiplies_scores_as_in_released_code(module, name):
    """S⁻¹ Σ_s (Σ_b f_sb) Σ_b ∇ log q_sb, and for VarGrad the covariance of the two sums over the
    draws."""
    batch = rows(n=3, scale=2.0)
    estimator = component("gradient", name, n_samples=S, product="batch_sum")
    gradients, _, _ = estimator.estimate(module, batch, Streams(0), None)
    draws = sample_guide(module, batch, S, Streams(0).noise)
    # [S], [S, P]
    f = draws.f.sum(1)
    h = sum(scores(module, draws.log_q[:, b]) for b in range(3))
    printed = (
        (f[:, None] * h).mean(0)
        if name == "reinforce"
        else ((f - f.mean())[:, None] * h).sum(0) / (S - 1)
    )
    assert_close(guide_part(module, gradients), -2.0 * printed, **EXACT)
    by_row, _, _ = component("gradient", name, n_samples=S).estimate(
        module, batch, Streams(0), None
    )
    for parameter, g, other in zip(module.named_parameters(), gradients, by_row, strict=True):
        if parameter[0] not in module.guide:
            assert_close(g, other, **EXACT)
    row = rows(n=1)
    estimators = [
        component("gradient", name, n_samples=S, product=p) for p in ("per_row", "batch_sum")
    ]
    single = [guide_part(module, e.estimate(module, row, Streams(0), None)[0]) for e in estimators]
    assert_close(*single, **EXACT)


def test_best_coefficient_is_minus_elbo_plus_delta(module):
    """Lemma 5.4.1: (5.12), (5.13) and (5.14) over all states; estimates from extra draws converge
    to it."""
    batch = rows()
    log_q, f = log_ratio(module, batch)
    # [64, 1], [64, P]
    q = log_q.exp().detach()
    h = scores(module, log_q[:, 0])
    f = f.detach()

    def mean(v):
        return (q * v).sum(0)

    def cov(a, b):
        return mean(a * b) - mean(a) * mean(b)

    best = cov(f * h, h) / cov(h, h)
    delta = cov(f, h.square()) / cov(h, h)
    assert_close(best, -exact_elbo(module, batch).detach() + delta, **EXACT)
    assert delta.abs().max() > 0.1

    many = rows(copies=1)
    X, H = per_draw_scores(module, many, sample_guide(module, many, 1000, Streams(0).noise))
    slope = coefficient((X * H).sum(0), H.square().sum(0))
    in_guide = torch.cat(
        [torch.full((p.numel(),), name in module.guide) for name, p in module.named_parameters()]
    )
    assert_close(slope[in_guide], best, rtol=0, atol=0.3)
    assert not slope[~in_guide].any()


def test_sampled_coefficient_uses_separate_draws(module):
    batch = rows(n=2, scale=3.0)
    estimator = component("gradient", "reinforce_cv", coefficient="sampled", n_samples=S)
    gradients, _, state = estimator.estimate(module, batch, Streams(0), None)
    assert state is None
    draws = sample_guide(module, batch, S, Streams(0).noise)
    h = torch.stack([scores(module, draws.log_q[:, b]) for b in range(2)], 1)  # [S, B, P]
    X = (draws.f[..., None] * h).sum(1)
    H = h.sum(1)
    product = X * H
    square = H.square()
    a = coefficient(product.sum(0) - product, square.sum(0) - square)
    assert_close(guide_part(module, gradients), -3.0 * (X - a * H).mean(0), **EXACT)


def test_running_coefficient_uses_earlier_estimates(module):
    batch = rows(n=2)
    estimator = component("gradient", "reinforce_cv", n_samples=2, decay=0.5)
    rng = Streams(0)
    state = estimator.init(module, rng)
    plain, _, _ = component("gradient", "reinforce", n_samples=2).estimate(
        module, batch, Streams(0), None
    )
    first, _, state = estimator.estimate(module, batch, rng, state)
    assert_close(flat(first), flat(plain), **EXACT)  # no estimates exist yet
    draws = sample_guide(module, batch, 2, Streams(0).noise)
    X, H = per_draw_scores(module, batch, draws)
    assert_close(state.product, 0.5 * (X * H).mean(0), **EXACT)
    assert_close(state.square, 0.5 * H.square().mean(0), **EXACT)


def test_exact_guide_has_zero_gradient():
    problem = real_rows(n=6)
    module = ppca(problem, exact_guide=True)
    names = [name for name, _ in module.named_parameters() if name.startswith("guide")]
    vargrad, reinforce = (component("gradient", n, n_samples=2) for n in ("vargrad", "reinforce"))
    rng = Streams(0)
    for _ in range(20):
        ours, others = (
            guide_part(module, estimator.estimate(module, problem.train, rng, None)[0], names)
            for estimator in (vargrad, reinforce)
        )
        assert_close(ours, torch.zeros_like(ours), rtol=0, atol=1e-9)
        assert others.abs().max() > 0.1


def test_variances_have_order_of_the_chapter(module):
    batch = rows(copies=1)

    def variance(name, **keys):
        estimator = component("gradient", name, n_samples=S, **keys)
        rng = Streams(0)
        state = estimator.init(module, rng)
        results = []
        for _ in range(150):
            gradients, _, state = estimator.estimate(module, batch, rng, state)
            results.append(guide_part(module, gradients))
        return float(torch.stack(results).var(0).sum())

    plain = variance("reinforce")
    loo = variance("vargrad")
    oracle = variance("reinforce_cv", coefficient="oracle", extra_samples=50)
    assert plain > 2 * loo
    assert oracle < loo
