"""igp: against scikit-learn, against loops, sparse against exact, masks, gradients, real rows."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
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

from components.contracts.problems import Batch
from components.contracts.roles import Setting
from components.models.shallow_gp.exact import ExactGP, _LogGaussian
from components.models.shallow_gp.labels import group_by_task
from components.models.shallow_gp.sparse import SparseGP

SHAPES = {
    "matern12": Matern(nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "squared_exponential": RBF(),
}
PLAIN = {"hyperprior": None, "lengthscale": 1.5, "variance": 1.0, "jitter": 1e-12}


def exact(p, **changes) -> ExactGP:
    return component("model", "igp", **{**PLAIN, **changes}).build(p, streams())


def sparse(p, **changes) -> SparseGP:
    return component("model", "igp", **{**PLAIN, "posterior": "sparse", **changes}).build(
        p, streams()
    )


# ---- exact
# ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ard", ["none", "own"])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_is_scikit_learns(shape, ard):
    p = problem()
    module = exact(p, kernel=shape, ard=ard)
    scatter_parameters(module)
    ours = module.sample_predictive(p.test.x, 1, torch.Generator())
    total = 0.0
    for t in range(3):
        seen = p.train.mask[:, t]
        length = module.covariance.log_lengthscale[t].exp().detach().numpy()
        correlation = SHAPES[shape].clone_with_theta(np.log(length[:1]))
        if ard == "own":
            correlation = type(SHAPES[shape])(
                length, **({"nu": correlation.nu} if hasattr(correlation, "nu") else {})
            )
        noise = module.likelihood.noise_variance[t].item()
        kernel = ConstantKernel(
            module.covariance.log_variance[t].exp().item()
        ) * correlation + WhiteKernel(noise)
        gp = GaussianProcessRegressor(kernel, alpha=1e-12, optimizer=None)
        gp.fit(p.train.x[seen].numpy(), p.train.y[seen, t].numpy())
        total += gp.log_marginal_likelihood_value_
        mean, sd = gp.predict(p.test.x.numpy(), return_std=True)
        np.testing.assert_allclose(ours.mean[:, t].detach(), mean, atol=1e-6)
        np.testing.assert_allclose(ours.variance[:, t].detach(), sd**2, atol=1e-6)
    terms = module.elbo(p.train, None)
    assert float(terms["elbo"]) == pytest.approx(total, abs=1e-5)
    assert float(terms["kl"]) == 0.0


def test_log_marginal_likelihood_literally():
    # Rasmussen and Williams (2006), eq. (5.8), label by label.
    p = problem(n=9)
    module = exact(p, ard="own", kernel="matern32", mean="linear")
    scatter_parameters(module)
    total = 0.0
    for t in range(3):
        rows = [i for i in range(9) if p.train.mask[i, t]]
        ell, v = module.covariance.log_lengthscale[t].exp(), module.covariance.log_variance[t].exp()
        K = torch.zeros(len(rows), len(rows), dtype=F64)
        for a, i in enumerate(rows):
            for b, j in enumerate(rows):
                r = math.sqrt(
                    sum(float((p.train.x[i, d] - p.train.x[j, d]) / ell[d]) ** 2 for d in range(4))
                )
                K[a, b] = v * (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
            K[a, a] += module.likelihood.noise_variance[t]
        mean = torch.stack(
            [module.mean.weight[t] @ p.train.x[i] + module.mean.bias[t] for i in rows]
        )
        residual = p.train.y[rows, t] - mean
        total += float(-0.5 * residual @ torch.linalg.inv(K) @ residual - 0.5 * torch.logdet(K))
        total -= 0.5 * len(rows) * math.log(2 * math.pi)
    assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(total, abs=1e-9)


def test_padding_adds_nothing():
    p = problem()
    together = exact(p)
    scatter_parameters(together)
    counts = group_by_task(p.train).count
    assert counts.min() < counts.max()
    for t in range(3):
        rows = p.train.mask[:, t]
        alone = problem()
        alone.train = Batch(
            p.train.x[rows], p.train.y[rows, t : t + 1], p.train.mask[rows, t : t + 1], 1.0
        )
        single = exact(alone)
        single.load_state_dict(
            {name: value[t : t + 1] for name, value in together.state_dict().items()}
        )
        difference = (
            single.sample_predictive(p.test.x, 1, torch.Generator()).mu[..., 0]
            - together.sample_predictive(p.test.x, 1, torch.Generator()).mu[..., t]
        )
        assert float(difference.abs().max()) < 1e-10
        gradient = torch.autograd.grad(
            single.elbo(alone.train, None)["elbo"], single.likelihood.raw_noise
        )[0]
        whole = torch.autograd.grad(
            together.elbo(p.train, None)["elbo"], together.likelihood.raw_noise
        )[0]
        assert float(gradient - whole[t]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("ard", "mean"), [("none", "zero"), ("own", "linear"), ("shared", "constant")]
)
def test_gradients(ard, mean):
    p = problem()
    for module in (
        exact(p, ard=ard, mean=mean, hyperprior=0.8),
        sparse(p, ard=ard, mean=mean, n_inducing=6),
    ):
        scatter_parameters(module, scale=0.2)
        assert gradient_error(module, lambda m=module: m.elbo(p.train, None)["elbo"]) < 1e-5


def test_log_gaussian_gradcheck():
    g = generator(0)
    root = torch.randn(2, 4, 4, generator=g, dtype=F64)
    d = torch.rand(2, 4, generator=g, dtype=F64) + 0.5
    r = torch.randn(2, 4, generator=g, dtype=F64)
    leaves = [a.requires_grad_() for a in (root, d, r)]
    assert torch.autograd.gradcheck(
        lambda root, d, r: _LogGaussian.apply(root @ root.mT, d, r, 1e-9)[0], leaves
    )


def test_shared_ard_is_own_ard_with_equal_lengthscales():
    p = problem()
    shared, own = exact(p, ard="shared"), exact(p, ard="own")
    scatter_parameters(shared)
    state = shared.state_dict()
    state["covariance.log_lengthscale"] = state["covariance.log_lengthscale"].expand(3, -1)
    own.load_state_dict(state)
    assert float(shared.elbo(p.train, None)["elbo"]) == pytest.approx(
        float(own.elbo(p.train, None)["elbo"]), abs=1e-10
    )


@torch.no_grad()
def test_hyperprior_literally():
    p = problem()
    module = exact(
        p,
        ard="own",
        hyperprior=0.5,
        lengthscale=2.0,
        variance=3.0,
        noise_variance=0.2,
        mean="linear",
    )
    scatter_parameters(module)
    total = 0.0
    for t in range(3):
        total -= 0.5 * (math.log(float(module.likelihood.noise_variance[t]) / 0.2) / 0.5) ** 2
        total -= 0.5 * (math.log(float(module.covariance.log_variance[t].exp()) / 3.0) / 0.5) ** 2
        total -= 0.5 * (float(module.mean.bias[t]) / 0.5) ** 2
        for d in range(4):
            total -= (
                0.5
                * (math.log(float(module.covariance.log_lengthscale[t, d].exp()) / 2.0) / 0.5) ** 2
            )
            total -= 0.5 * 4 * (float(module.mean.weight[t, d]) / 0.5) ** 2
    terms = module.elbo(p.train, None)
    assert float(terms["elbo"] - terms["log_likelihood"]) == pytest.approx(total, abs=1e-9)


def test_cholesky_is_kept_until_the_hyperparameters_change():
    p = problem()
    module = exact(p)
    first = module.condition()
    assert module.condition() is first
    module.sample_predictive(p.test.x, 1, torch.Generator())
    assert module.condition() is first
    module.elbo(p.train, None)["elbo"].backward()
    torch.optim.Adam(module.parameters(), fused=True).step()
    second = module.condition()
    assert second is not first
    module.load_state_dict({k: v + 0.1 for k, v in module.state_dict().items()})
    assert not torch.equal(module.condition().L, second.L)


def test_prediction_is_differentiable_in_x():
    p = problem()
    for module in (exact(p), sparse(p)):
        x = p.test.x.clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x, m=module: (q := m.sample_predictive(x, 1, torch.Generator())).mu + q.v,
            [x[:2]],
        )


def test_exact_refuses_other_labels():
    with pytest.raises(ValueError, match=r"model.posterior=exact: only real labels"):
        exact(problem("binary"))


# ---- sparse
# --------------------------------------------------------------------------------------------------------
def test_sparse_at_all_rows_is_exact():
    p = problem(n=15, keep=1.0)
    full = exact(p, ard="own", mean="linear")
    scatter_parameters(full)
    module = sparse(p, ard="own", mean="linear", n_inducing=15)
    module.load_state_dict(full.state_dict(), strict=False)
    set_optimal_q(module, p.train)
    assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(
        float(full.elbo(p.train, None)["elbo"]), abs=1e-5
    )
    a, b = (m.sample_predictive(p.test.x, 1, torch.Generator()) for m in (module, full))
    assert float((a.mu - b.mu).abs().max()) < 1e-6
    assert float((a.v - b.v).abs().max()) < 1e-6


def test_sparse_is_a_lower_bound_that_rises_with_inducing_inputs():
    p = problem(n=40, keep=0.7)
    bounds = []
    for M in (2, 5, 10, 40):
        module = sparse(p, n_inducing=M)
        set_optimal_q(module, p.train)
        bounds.append(float(module.elbo(p.train, None)["elbo"]))
    limit = float(exact(p).elbo(p.train, None)["elbo"])
    assert bounds == sorted(bounds)
    assert bounds[0] < limit - 1
    # With 40 ≥ every task's rows, its own rows are all among its inducing inputs.
    assert bounds[-1] == pytest.approx(limit, abs=1e-5)


@pytest.mark.parametrize("target", ["real", "binary"])
def test_minibatches_sum_to_the_whole(target):
    p = problem(target, n=24)
    module = sparse(p, n_inducing=5)
    scatter_parameters(module, scale=0.1)
    whole = module.elbo(p.train, None)
    parts = [
        module.elbo(Batch(p.train.x[r], p.train.y[r], p.train.mask[r], 3.0), None)["log_likelihood"]
        / 3
        for r in torch.randperm(24, generator=generator(2)).split(8)
    ]
    assert float(sum(parts)) == pytest.approx(float(whole["log_likelihood"]), rel=1e-10)


@pytest.mark.parametrize("initial", ["rows", "kmeans"])
def test_inducing_inputs_are_a_tasks_own_first(initial):
    p = problem(n=30, keep=0.5)
    module = sparse(p, n_inducing=8, inducing=initial)
    assert module.inducing.shape == (3, 8, 4)
    if initial == "rows":
        for t in range(3):
            own = p.train.x[p.train.mask[:, t]]
            assert all((own == z).all(1).any() for z in module.inducing[t])
    assert sparse(p, n_inducing=100).inducing.shape == (3, 30, 4)


def test_two_classes_by_sampling_agree_with_quadrature():
    # log softmax(f)_y = log σ(f_y − f_other), whose expectation is a one-dimensional quadrature.
    p = problem("binary")
    p.target = "classes"  # type: ignore[assignment]
    module = sparse(p, n_inducing=6)
    scatter_parameters(module, scale=0.3)
    labels = group_by_task(p.train)
    with torch.no_grad():
        mean, variance, _ = module.marginals(labels.x, labels.task)
    nodes, weights = np.polynomial.hermite.hermgauss(50)
    sign = 2 * labels.y.to(F64) - 1
    gap_mean, gap_sd = sign * (mean[0, ..., 1] - mean[0, ..., 0]), variance[0].sum(-1).sqrt()
    f = gap_mean[..., None] + gap_sd[..., None] * torch.as_tensor(nodes * math.sqrt(2))
    exactly = float(
        (
            (torch.nn.functional.logsigmoid(f) @ torch.as_tensor(weights / math.sqrt(math.pi)))
            * labels.mask
        ).sum()
    )
    g = generator(3)
    with torch.no_grad():
        draws = torch.stack(
            [
                module.elbo(p.train, module.draw_noise(p.train, 4, g))["log_likelihood"]
                for _ in range(400)
            ]
        )
    z = (float(draws.mean()) - exactly) / float(draws.std() / 20)
    assert abs(z) < 3.5
    # A bound that forgot to divide by the number of samples must not pass.
    assert abs(4 * float(draws.mean()) - exactly) / float(4 * draws.std() / 20) > 10


@pytest.mark.parametrize(
    ("target", "size"), [("binary", (1, 11, 3, 2)), ("classes", (7, 11, 3, 3))]
)
def test_class_predictions(target, size):
    p = problem(target)
    predictive = sparse(p).sample_predictive(p.test.x, 7, generator(0))
    assert predictive.logits.shape == size
    assert torch.allclose(predictive.probs.sum(-1), torch.ones(size[1:3], dtype=F64))


# ---- real rows
# -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_sarcos_rows_are_predicted_as_an_exact_gp_should():
    folder = os.environ.get("RUNNER_DATA_DIR")
    if not folder or not (Path(folder) / "sarcos" / "sarcos_inv_test.mat").exists():
        pytest.skip("RUNNER_DATA_DIR is not set or holds no sarcos/sarcos_inv_test.mat")
    setting = Setting(Path(folder), torch.device("cpu"), F64, replicates=1, offline=True)
    dataset = component(
        "dataset", "sarcos", split="test_file", n_train=1000, offline="error", batch_size=None
    )
    model = component("model", "igp", ard="none", hyperprior=None, lengthscale=3.0, variance=1.0)
    inference = component("inference", "lbfgs")
    scores = []
    for seed in range(3):
        rng = streams(seed)
        p = dataset.load(rng, setting)
        state = inference.init(model.build(p, rng), p, rng)
        for _, batch in p.batches("minibatch", rng, 0, 200):
            state, info = inference.step(state, batch, rng)
            if info["converged"]:
                break
        scores.append(p.score(inference.posterior(state), rng))
    assert np.mean([s["rmse"] for s in scores]) < 0.30
    assert np.mean([s["nlpp"] for s in scores]) < 0.0
