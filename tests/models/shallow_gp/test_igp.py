"""igp with its exact posterior: compared with scikit-learn and the literal likelihood; masks and
gradients."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from support.runs.configured import build_model, generator, normal
from support.small.shallow_gp_problems import (
    F64,
    PLAIN,
    elbo_of,
    predict,
    problem,
    scatter_parameters,
)
from torch.autograd import gradcheck

from components.models.shallow_gp import exact as exact_gp
from components.models.shallow_gp.exact import _LogGaussian

SHAPES = {
    "matern12": Matern(nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "squared_exponential": RBF(),
}


def exact(p, **changes):
    return build_model("igp", p, **{**PLAIN, **changes})


def sparse(p, **changes):
    return exact(p, posterior="sparse", **changes)


@pytest.mark.parametrize("ard", ["none", "own"])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_gp_equals_scikit_learn(shape, ard):
    p = problem()
    module = exact(p, kernel=shape, ard=ard, mean="linear")
    scatter_parameters(module)
    ours = predict(module, p.test.x)
    total = 0.0
    for t in range(3):
        is_labelled = p.train.mask[:, t]
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
        linear = [
            (x @ module.mean.weight[t] + module.mean.bias[t]).detach().numpy()
            for x in (p.train.x[is_labelled], p.test.x)
        ]
        gp.fit(p.train.x[is_labelled].numpy(), p.train.y[is_labelled, t].numpy() - linear[0])
        total += gp.log_marginal_likelihood_value_
        mean, sd = gp.predict(p.test.x.numpy(), return_std=True)
        assert_allclose(ours.mean[:, t].detach(), mean + linear[1], atol=1e-6)
        assert_allclose(ours.variance[:, t].detach(), sd**2, atol=1e-6)
    terms = module.elbo(p.train, None)
    assert float(terms["elbo"]) == pytest.approx(total, abs=1e-5)
    assert float(terms["kl"]) == 0.0


def test_log_gaussian_passes_gradcheck():
    g = generator(0)
    root = normal(g, 2, 4, 4)
    d = torch.rand(2, 4, generator=g, dtype=F64) + 0.5
    r = normal(g, 2, 4)
    leaves = [a.requires_grad_() for a in (root, d, r)]
    assert gradcheck(
        lambda root, d, r: _LogGaussian.apply(root @ root.mT, d, r, 1e-9, False)[0], leaves
    )


@pytest.mark.parametrize("name", ["igp", "cgp", "collapsed_mdgp"])
def test_blocks_of_rows_give_the_same_bound_and_gradient(name, monkeypatch):
    """Blocks of a few rows, with unequal numbers of labels per task."""
    terms = []
    for block in (2**24, 7 * 40 * 3):
        monkeypatch.setattr(exact_gp, "BLOCK", block)
        data = problem(n=40, keep=0.6)
        module = build_model(name, data)
        noise = module.draw_noise(data.train, 2, generator(0))
        bound = module.elbo(data.train, noise)["elbo"]
        bound.backward()
        terms.append([bound, *(p.grad for p in module.parameters())])
    for whole, blocked in zip(*terms, strict=True):
        assert_allclose(blocked.detach(), whole.detach(), rtol=1e-10, atol=1e-10)


def test_shared_ard_equals_own_ard_with_equal_lengthscales():
    p = problem()
    shared = exact(p, ard="shared")
    own_ard = exact(p, ard="own")
    scatter_parameters(shared)
    state = shared.state_dict()
    state["covariance.log_lengthscale"] = state["covariance.log_lengthscale"].expand(3, -1)
    own_ard.load_state_dict(state)
    assert float(elbo_of(shared, p.train)) == pytest.approx(
        float(elbo_of(own_ard, p.train)), abs=1e-10
    )


def test_cholesky_is_cached_until_hyperparameters_change():
    p = problem()
    module = exact(p)
    first = module.condition()
    assert module.condition() is first
    predict(module, p.test.x)
    assert module.condition() is first
    elbo_of(module, p.train).backward()
    torch.optim.Adam(module.parameters(), fused=True).step()
    second = module.condition()
    assert second is not first
    module.load_state_dict({k: v + 0.1 for k, v in module.state_dict().items()})
    assert not torch.equal(module.condition().L, second.L)


def test_prediction_is_differentiable_in_x():
    p = problem()
    for module in (exact(p), sparse(p)):
        x = p.test.x.clone().requires_grad_()
        assert gradcheck(
            lambda x, m=module: (q := predict(m, x)).mu + q.v,
            [x[:2]],
        )


def test_exact_gp_rejects_other_labels():
    with pytest.raises(ValueError, match=r"model.posterior=exact: requires real labels"):
        exact(problem("binary"))
