"""lmc: compared with sums over labels, and its sparse predictions with exact ones."""

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import build_model, generator, normal
from support.small.shallow_gp_problems import (
    F64,
    OWN,
    PLAIN,
    SLFM,
    covariance_literally,
    matern52,
    predict,
    problem,
    scatter_parameters,
)
from torch.autograd import gradcheck
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.models.multitask_gp.prefix import PrefixGP, add_product, lower_product
from components.models.shallow_gp.exact import ExactGP


def build(p, **changes):
    return build_model("lmc", p, **PLAIN | OWN | changes)


def test_slfm_equals_equation_3_16():
    # f_t = Σ_i w_i^t g_i: the covariance of f at all points is the sum over shared functions of
    # w_i w_iᵀ ⊗ K_i.
    p = problem(n=8, keep=1.0)
    module = build(p, kernels=2, **SLFM)
    scatter_parameters(module)
    task = torch.arange(3).repeat_interleave(8)[None]
    x = p.train.x.repeat(3, 1)[None]
    expected = torch.zeros(24, 24, dtype=F64)
    for part in module.covariance.parts:
        assert part.log_kappa is None
        scaled = p.train.x / part.log_lengthscale[0].exp()
        expected = expected + torch.kron(part.W @ part.W.T, matern52(scaled, scaled))
    assert_close(module.covariance.matrix(x, task, x, task)[0], expected)


def prefix(p, **changes):
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
    ours = predict(module, p.test.x)
    theirs = predict(full, p.test.x)
    assert_close((ours.mean, ours.variance), (theirs.mean, theirs.variance))


@torch.no_grad()
def sparse_literally(module, p, noise_power=1.0):
    """Titsias (2009), eq. (6) with the optimal q(u) of (10): Σ = K_zz + K_zx D⁻¹ K_xz,
    mean K_*z Σ⁻¹ K_zx D⁻¹ y, variance k − K_*z K_zz⁻¹ K_z* + K_*z Σ⁻¹ K_z*."""
    z = module.inducing
    n = module.evidence
    D = module.likelihood.noise_variance[n.task[0]] ** noise_power

    def to_pairs(task, x):
        return covariance_literally(module, z.task[0], z.x[0], task, x)

    Kzz = to_pairs(z.task[0], z.x[0])
    Kzx = to_pairs(n.task[0], n.x[0])
    sigma = torch.linalg.inv(Kzz + Kzx @ torch.diag(1 / D) @ Kzx.T)
    mean = torch.zeros_like(p.test.y)
    variance = torch.zeros_like(p.test.y)
    for t in range(p.n_tasks):
        task = torch.full((len(p.test.x),), t)
        k = to_pairs(task, p.test.x)
        mean[:, t] = k.T @ sigma @ Kzx @ (n.y[0] / D)
        prior = covariance_literally(module, task, p.test.x, task, p.test.x).diagonal()
        reduction = (k * (torch.linalg.inv(Kzz) @ k)).sum(0) - (k * (sigma @ k)).sum(0)
        variance[:, t] = prior - reduction + module.likelihood.noise_variance[t]
    return mean, variance


def test_sparse_prediction_equals_its_formula():
    p = problem(n=20)
    module = prefix(p, learn_labels=9, prediction_pairs=12)
    scatter_parameters(module)
    mean, variance = sparse_literally(module, p)
    ours = predict(module, p.test.x)
    assert_close((ours.mean, ours.variance), (mean, variance))
    # the broken variant: labels of unit noise
    wrong, _ = sparse_literally(module, p, noise_power=0.0)
    assert (ours.mean - wrong).abs().max() > 1e-2


def test_chunks_of_labels_keep_the_prediction(monkeypatch):
    p = problem(n=40)
    module = prefix(p, learn_labels=9, prediction_pairs=20)
    scatter_parameters(module)
    whole = predict(module, p.test.x)
    monkeypatch.setattr("components.models.multitask_gp.prefix.CHUNK", 7)
    again = prefix(p, learn_labels=9, prediction_pairs=20)
    again.load_state_dict(module.state_dict())
    ours = predict(again, p.test.x)
    assert_close((ours.mean, ours.variance), (whole.mean, whole.variance))


def test_bound_uses_the_prefix_and_current_parameters():
    p = problem(n=30)
    module = prefix(p, learn_labels=11, prediction_pairs=25)
    alone = ExactGP.log_marginal(module, module.labels)[0]
    assert torch.equal(module.elbo(p.train, None)["log_likelihood"], alone)
    old_mean = predict(module, p.test.x).mean
    with torch.no_grad():
        module.likelihood.raw_noise += 1.0
    assert (predict(module, p.test.x).mean - old_mean).abs().max() > 1e-3
    # a larger set of pairs contains a smaller one
    more = prefix(p, learn_labels=11, prediction_pairs=30)
    few = {tuple(row.tolist()) for row in module.inducing.x[0]}
    assert few <= {tuple(row.tolist()) for row in more.inducing.x[0]}


def test_sparse_prediction_is_differentiable_in_x():
    p = problem(n=20)
    module = prefix(p, prediction_pairs=10)
    x = p.test.x[:2].clone().requires_grad_()
    assert gradcheck(lambda rows: predict(module, rows).variance, x)


def test_block_products_equal_dense_products():
    g = generator(0)
    for size in (1, 3, 21):
        L = normal(g, size, size).tril()
        K = normal(g, size, 5)
        total = torch.zeros(size, size, dtype=F64)
        add_product(total, K)
        assert_close(lower_product(L, K), L @ K)
        assert_close(total.tril(), (K @ K.T).tril())


def test_sparse_prediction_of_a_sparse_posterior_is_refused():
    with pytest.raises(ValidationError, match=r"prediction: sparse .*model\.posterior=exact"):
        build(problem(), prediction="sparse", posterior="sparse")
    with pytest.raises(ConfigMismatchError, match="requires real labels"):
        build(problem("binary"), prediction="sparse")
