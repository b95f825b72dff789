"""lmc: against sums over labels, cgp and igp where they coincide, and its sparse predictions against
the exact ones."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import generator
from support.small.shallow_gp_problems import (
    F64,
    gradient_error,
    problem,
    scatter_parameters,
    set_optimal_q,
    streams,
)
from support.small.small_problems import component

from components.errors import ConfigMismatchError
from components.models.multitask_gp.prefix import PrefixGP, add_product, lower_product
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised

PLAIN = {
    "hyperprior": None,
    "lengthscale": 1.5,
    "variance": 1.0,
    "own_lengthscale": 2.0,
    "own_variance": 0.5,
    "jitter": 1e-12,
}
SLFM = {"rank": 1, "diagonal": False, "own": "none"}


def build(p: Supervised, **changes) -> ExactGP | SparseGP:
    return component("model", "lmc", **{**PLAIN, **changes}).build(p, streams())


def matern52(x: torch.Tensor, z: torch.Tensor, ell: torch.Tensor) -> float:
    s = math.sqrt(5 * sum(float((x[d] - z[d]) / ell[d]) ** 2 for d in range(len(x))))
    return (1 + s + s * s / 3) * math.exp(-s)


@torch.no_grad()
def covariance_literally(module, s: int, x: torch.Tensor, t: int, z: torch.Tensor) -> float:
    """Σ_q (Σ_r w_qsr w_qtr + δ_st κ_qs) κ_q(x, z) + δ_st σ_s² κ_s(x, z)."""
    total = 0.0
    for part in module.covariance.parts:
        if hasattr(part, "W"):
            b = sum(float(part.W[s, r] * part.W[t, r]) for r in range(part.W.shape[1]))
            if s == t and part.log_kappa is not None:
                b += float(part.log_kappa[s].exp())
            total += b * matern52(x, z, part.log_lengthscale[0].exp().expand(len(x)))
        elif s == t:
            ell = part.log_lengthscale[s].exp()
            total += float(part.log_variance[s].exp()) * matern52(x, z, ell)
    return total


@torch.no_grad()
def literally(module, p: Supervised) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Log marginal likelihood, and predictive means and variances [B, T], label by label."""
    noise = module.likelihood.noise_variance
    labels = [(i, t) for i in range(p.n) for t in range(p.n_tasks) if p.train.mask[i, t]]
    x, y = p.train.x, torch.stack([p.train.y[i, t] for i, t in labels])
    C = torch.tensor(
        [[covariance_literally(module, s, x[i], t, x[j]) for j, t in labels] for i, s in labels],
        dtype=F64,
    )
    C += torch.diag(noise[[t for _, t in labels]])
    marginal = torch.distributions.MultivariateNormal(torch.zeros_like(y), C).log_prob(y)
    mean, variance = torch.zeros_like(p.test.y), torch.zeros_like(p.test.y)
    inverse = torch.linalg.inv(C)
    for b, new in enumerate(p.test.x):
        for t in range(p.n_tasks):
            k = torch.tensor(
                [covariance_literally(module, s, x[i], t, new) for i, s in labels], dtype=F64
            )
            mean[b, t] = k @ inverse @ y
            prior = covariance_literally(module, t, new, t, new)
            variance[b, t] = prior - k @ inverse @ k + noise[t]
    return float(marginal), mean, variance


def predict(module, p: Supervised):
    with torch.no_grad():
        return module.sample_predictive(p.test.x, 1, torch.Generator())


@pytest.mark.parametrize("changes", [{}, {"kernels": 2, "ard": "none"}, {"kernels": 3, **SLFM}])
def test_exact_literally_with_missing_labels(changes):
    p = problem(n=10)
    module = build(p, **changes)
    scatter_parameters(module)
    marginal, mean, variance = literally(module, p)
    with torch.no_grad():
        assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(marginal, abs=1e-8)
    ours = predict(module, p)
    assert torch.allclose(ours.mean, mean, atol=1e-8)
    assert torch.allclose(ours.variance, variance, atol=1e-8)


def test_slfm_is_equation_3_16():
    # f_t = Σ_i w_i^t g_i: the covariance of f at all points is the sum over shared functions of
    # w_i w_iᵀ ⊗ K_i.
    p = problem(n=8, keep=1.0)
    module = build(p, kernels=2, **SLFM)
    scatter_parameters(module)
    task = torch.arange(3).repeat_interleave(8)[None]
    x = p.train.x.repeat(3, 1)[None]
    with torch.no_grad():
        ours = module.covariance.matrix(x, task, x, task)[0]
        expected = torch.zeros(24, 24, dtype=F64)
        for part in module.covariance.parts:
            assert part.log_kappa is None
            ell = part.log_lengthscale[0].exp()
            K = torch.tensor([[matern52(a, b, ell) for a in p.train.x] for b in p.train.x])
            expected += torch.kron(part.W @ part.W.T, K.to(F64))
    assert torch.allclose(ours, expected, atol=1e-10)


def test_one_kernel_without_own_is_cgp():
    p = problem()
    icm = component("model", "cgp", **{k: v for k, v in PLAIN.items() if k[:3] != "own"})
    icm = icm.build(p, streams())
    module = build(p, own="none")
    ours, theirs = (m.elbo(p.train, None)["elbo"] for m in (module, icm))
    assert float(ours.detach()) == float(theirs.detach())
    assert torch.equal(predict(module, p).mean, predict(icm, p).mean)


def test_own_kernels_only_are_igp():
    p = problem()
    module = build(p, variance=1e-12, own_variance=0.7)
    independent = component(
        "model", "igp", hyperprior=None, lengthscale=2.0, variance=0.7, jitter=1e-12
    ).build(p, streams())
    with torch.no_grad():
        ours, theirs = (float(m.elbo(p.train, None)["elbo"]) for m in (module, independent))
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert torch.allclose(predict(module, p).variance, predict(independent, p).variance, atol=1e-6)
    # a shared kernel shows
    assert abs(float(build(p).elbo(p.train, None)["elbo"].detach()) - ours) > 1e-2


@pytest.mark.parametrize("changes", [{"kernels": 2}, {"kernels": 2, **SLFM}])
def test_gradients(changes):
    p = problem()
    for more in ({}, {"posterior": "sparse", "n_inducing": 9}):
        module = build(p, **PLAIN | {"hyperprior": 0.8, "mean": "linear"} | changes | more)
        scatter_parameters(module, scale=0.2)
        assert gradient_error(module, lambda m=module: m.elbo(p.train, None)["elbo"]) < 1e-5


def test_hyperprior_literally():
    p = problem()
    settings = {"hyperprior": 0.5, "lengthscale": 2.0, "variance": 3.0, "noise_variance": 0.2}
    module = build(p, kernels=2, own_lengthscale=4.0, own_variance=0.3, **settings)
    slfm = build(p, kernels=2, **SLFM, **settings)
    for m, half in ((module, 2), (slfm, 1)):
        m.requires_grad_(False)
        scatter_parameters(m)
        total = 0.0
        log_scales: list[tuple[torch.Tensor, float]] = [(m.likelihood.noise_variance.log(), 0.2)]
        for part in m.covariance.parts:
            if hasattr(part, "W"):
                # W ~ N(0, v/R), v the share of W Wᵀ in the variance of the kernel
                share = 3.0 / 2 / half
                total -= float(part.W.detach().square().sum()) / (2 * share / part.W.shape[1])
                log_scales.append((part.log_lengthscale, 2.0))
                if part.log_kappa is not None:
                    log_scales.append((part.log_kappa, share))
            else:
                log_scales += [(part.log_lengthscale, 4.0), (part.log_variance, 0.3)]
        for value, start in log_scales:
            total -= 0.5 * float(((value - math.log(start)) / 0.5).square().sum())
        terms = m.elbo(p.train, None)
        difference = float(terms["elbo"] - terms["log_likelihood"])
        assert difference == pytest.approx(total, abs=1e-9)


def test_slfm_starts_at_the_variance_on_average():
    p = problem()
    model = component("model", "lmc", **{**PLAIN, **SLFM, "variance": 2.0, "kernels": 4})
    total = torch.zeros(3, 3, dtype=F64)
    for seed in range(150):
        parts = model.build(p, streams(seed)).covariance.parts
        total += sum(part.coregionalisation.detach() for part in parts) / 150
    # Var[Σ_q w_qt²] = 4 · 2 (v/4)² = 2: a standard error of 0.12
    assert float((total - 2 * torch.eye(3, dtype=F64)).abs().max()) < 0.4


def test_posterior_sparse_at_all_labels_is_exact():
    p = problem(n=10)
    full = build(p, kernels=2)
    scatter_parameters(full)
    module = build(p, kernels=2, posterior="sparse", n_inducing=int(p.train.mask.sum()))
    module.load_state_dict(full.state_dict(), strict=False)
    row, task = p.train.mask.nonzero(as_tuple=True)
    module.inducing.data.copy_(p.train.x[row][None])
    module.inducing_task = task[None]
    set_optimal_q(module, p.train)
    assert torch.allclose(predict(module, p).variance, predict(full, p).variance, atol=1e-6)


# ---- prediction: sparse


def prefix(p: Supervised, **changes) -> PrefixGP:
    module = build(p, prediction="sparse", **changes)
    assert isinstance(module, PrefixGP)
    return module


def test_sparse_prediction_at_all_labels_is_exact():
    p = problem(n=30)
    full = build(p, mean="linear")
    scatter_parameters(full)
    module = prefix(p, mean="linear", learn_labels=7)
    module.load_state_dict(full.state_dict())
    assert module.labels.total == 7
    assert module.evidence.total == full.labels.total == module.inducing.total
    ours, theirs = predict(module, p), predict(full, p)
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-6)
    assert torch.allclose(ours.variance, theirs.variance, atol=1e-6)


@torch.no_grad()
def sparse_literally(module: PrefixGP, p: Supervised, noise_power: float = 1.0):
    """Titsias (2009), eq. (6) with the optimal q(u) of (10): Σ = K_zz + K_zx D⁻¹ K_xz,
    mean K_*z Σ⁻¹ K_zx D⁻¹ y, variance k − K_*z K_zz⁻¹ K_z* + K_*z Σ⁻¹ K_z*."""
    z, n = module.inducing, module.evidence
    pairs = list(zip(z.task[0].tolist(), z.x[0], strict=True))
    D = module.likelihood.noise_variance[n.task[0]] ** noise_power

    def to_pairs(points):
        return torch.tensor(
            [[covariance_literally(module, s, a, t, b) for t, b in points] for s, a in pairs],
            dtype=F64,
        )

    Kzz = to_pairs(pairs)
    Kzx = to_pairs(list(zip(n.task[0].tolist(), n.x[0], strict=True)))
    sigma = torch.linalg.inv(Kzz + Kzx @ torch.diag(1 / D) @ Kzx.T)
    mean, variance = torch.zeros_like(p.test.y), torch.zeros_like(p.test.y)
    for t in range(p.n_tasks):
        k = to_pairs([(t, b) for b in p.test.x])
        mean[:, t] = k.T @ sigma @ Kzx @ (n.y[0] / D)
        prior = covariance_literally(module, t, p.test.x[0], t, p.test.x[0])
        reduction = (k * (torch.linalg.inv(Kzz) @ k)).sum(0) - (k * (sigma @ k)).sum(0)
        variance[:, t] = prior - reduction + module.likelihood.noise_variance[t]
    return mean, variance


def test_sparse_prediction_literally():
    p = problem(n=20)
    module = prefix(p, learn_labels=9, prediction_pairs=12)
    scatter_parameters(module)
    mean, variance = sparse_literally(module, p)
    ours = predict(module, p)
    assert torch.allclose(ours.mean, mean, atol=1e-7)
    assert torch.allclose(ours.variance, variance, atol=1e-7)
    # the broken variant: labels of unit noise
    wrong, _ = sparse_literally(module, p, noise_power=0.0)
    assert float((ours.mean - wrong).abs().max()) > 1e-2


def test_chunks_of_labels_do_not_matter(monkeypatch):
    p = problem(n=40)
    module = prefix(p, learn_labels=9, prediction_pairs=20)
    scatter_parameters(module)
    whole = predict(module, p)
    monkeypatch.setattr("components.models.multitask_gp.prefix.CHUNK", 7)
    again = prefix(p, learn_labels=9, prediction_pairs=20)
    again.load_state_dict(module.state_dict())
    assert torch.allclose(predict(again, p).variance, whole.variance, atol=1e-10)
    assert torch.allclose(predict(again, p).mean, whole.mean, atol=1e-10)


def test_bound_is_of_the_prefix_and_predictions_follow_the_parameters():
    p = problem(n=30)
    module = prefix(p, learn_labels=11, prediction_pairs=25)
    bound = float(module.elbo(p.train, None)["log_likelihood"].detach())
    alone = ExactGP.log_marginal(module, module.labels)[0]
    assert bound == float(alone.detach())
    before = predict(module, p).mean
    with torch.no_grad():
        module.likelihood.raw_noise += 1.0
    assert float((predict(module, p).mean - before).abs().max()) > 1e-3
    # a larger set of pairs contains a smaller one
    more = prefix(p, learn_labels=11, prediction_pairs=30)
    few = {tuple(row.tolist()) for row in module.inducing.x[0]}
    assert few <= {tuple(row.tolist()) for row in more.inducing.x[0]}


def test_sparse_prediction_is_differentiable_in_x():
    p = problem(n=20)
    module = prefix(p, prediction_pairs=10)
    x = p.test.x[:2].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda rows: module.sample_predictive(rows, 1, torch.Generator()).variance, x
    )


def test_block_products():
    g = generator(0)
    for size in (1, 3, 21):
        L = torch.randn(size, size, generator=g, dtype=F64).tril()
        K = torch.randn(size, 5, generator=g, dtype=F64)
        total = torch.zeros(size, size, dtype=F64)
        add_product(total, K)
        assert torch.allclose(lower_product(L, K), L @ K)
        assert torch.allclose(total.tril(), (K @ K.T).tril())


def test_sparse_prediction_of_a_sparse_posterior_is_refused():
    with pytest.raises(ValidationError, match=r"prediction: sparse .*model\.posterior=exact"):
        build(problem(), prediction="sparse", posterior="sparse")
    with pytest.raises(ConfigMismatchError, match="only real labels"):
        build(problem("binary"), prediction="sparse")
