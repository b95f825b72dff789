"""Deep GP in which only the posterior is learnt: printed equations, its layer, and gradients by
row."""

import math

import pytest
import torch
from support.runs.configured import F64, build_model, generator, normal
from support.small.small_problems import real
from torch.autograd import grad, gradcheck
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.gradients.by_parameter import flat
from components.gradients.pathwise.bound import row_gradients, whole_gradient
from components.models.deep_gp.layer import GPLayer, InitialKernel
from runner.execution.rng import Streams


def problem(D=3, missing_row=None):
    data = real(n_inputs=D, n_tasks=1, missing=0.0, batch_size=10)
    if missing_row is not None:
        data.train.mask[missing_row] = False
        data.train.y[missing_row] = math.nan
    return data


def build(data=None, trained=True, **keys):
    """A model with q away from its initial value."""
    small = {"n_inducing": 6, "top": "sampled", "inner_q_scale": 1.0}
    module = build_model("dgp", data or problem(), **small | keys)
    if trained:
        g = generator(1)
        with torch.no_grad():
            for p in module.parameters():
                p += 0.3 * normal(g, p.shape)
    return module


def noise_of(module, batch, S=2):
    return module.draw_noise(batch, S, generator(3))


def sampled_by_hand(module, x, noise, lengthscale=2.0, variance=2.0, jitter=1e-6):
    """f_1 and the moments of f_2 for one row and one noise, from K_uu, K_fu and K_ff as printed in
    B.2.2, unwhitened."""

    def k(a, b):
        return variance * torch.exp(-0.5 * torch.cdist(a, b).square() / lengthscale**2)

    def moments(layer, inputs):
        Z = layer.inducing
        K = k(Z, Z) + variance * jitter * torch.eye(len(Z), dtype=F64)
        L = torch.linalg.cholesky(K)
        kfu = k(inputs[None], Z)
        mean = []
        spread = []
        for m, C in zip(layer.q_mean, layer.q_tril, strict=True):
            # q(u) of u = L v, in units of the prior
            u = L @ m
            S = L @ C @ C.T @ L.T
            w = torch.linalg.solve(K, kfu.T).T
            mean.append((w @ u)[0])
            spread.append((k(inputs[None], inputs[None]) - w @ kfu.T + w @ S @ w.T)[0, 0])
        return torch.stack(mean), torch.stack(spread)

    mean, spread = moments(module.inner, x)
    features = mean + x + spread.sqrt() * noise[: len(mean)]
    mean, spread = moments(module.top, features)
    return features, mean[0], spread[0]


@pytest.mark.parametrize("top", ["sampled", "integrated"])
def test_bound_rows_equal_those_printed(top):
    """(B.7) row by row: log N(y_b; f_2(ε_2), σ²) at f_1(ε_1), or its mean over f_2 in closed
    form."""
    data = problem()
    module = build(data, top=top, inner_dim=3)
    batch = data.train.part(slice(0, 4), 10.0)
    noise = noise_of(module, batch)
    assert noise.shape == (2, 4, 4 if top == "sampled" else 3) == (2, 4, module.noise_dim)
    rows = module.elbo_rows(batch, noise)
    law = Normal
    for s in range(2):
        for b in range(4):
            _, mean, variance = sampled_by_hand(module, batch.x[b], noise[s, b])
            y = batch.y[b, 0]
            if top == "sampled":
                expected = law(mean + variance.sqrt() * noise[s, b, -1], 0.1).log_prob(y)
            else:
                expected = law(mean, 0.1).log_prob(y) - variance / (2 * 0.01)
            assert_close(rows[s, b], expected)


def test_layer_equals_the_family_with_fixed_hyperparameters():
    """Mean, variance and KL of ``GPLayer`` with the same q, and the gradients of all learnt
    parameters."""
    data = problem()
    layer = build(data, inner_dim=2).inner
    assert layer.mean_weight is not None
    kernel = InitialKernel("squared_exponential", ard=False, lengthscale=2.0, variance=2.0)
    family = GPLayer(
        "family",
        layer.inducing[None],
        2,
        kernel=kernel,
        q_mean=layer.q_mean[None],
        q_scale=1.0,
        mean_weight=layer.mean_weight[None],
        jitter=1e-6,
    )
    family.q_tril.data.copy_(layer.q_tril[None])
    mean, variance = layer(data.train.x)
    m, v, kl = family(data.train.x)
    assert_close(mean.T, m[0])
    assert_close(variance.T, v[0])
    assert_close(layer.kl(), kl.kl)
    ours = grad((mean * variance).sum() - layer.kl(), [layer.q_mean, layer.q_packed])
    theirs = grad((m * v).sum() - kl.kl, [family.q_mean, family.q_tril])
    assert_close(ours[0], theirs[0][0])
    row, column = torch.tril_indices(6, 6)
    assert_close(ours[1], theirs[1][0][:, row, column])


def test_only_the_posterior_is_learnt():
    """P = Σ_l Q_l (M + M(M + 1)/2), 390 in B.2.2, excludes kernels, noise and inducing inputs."""
    module = build(problem(D=5), n_inducing=10, trained=False)
    assert {name for name, _ in module.named_parameters()} == {
        "inner.q_mean",
        "inner.q_packed",
        "top.q_mean",
        "top.q_packed",
    }
    assert sum(p.numel() for p in module.parameters()) == 6 * (10 + 55)
    assert torch.equal(module.inner.q_tril, torch.eye(10, dtype=F64).expand(5, 10, 10))
    assert float(module.kl()) == 0.0  # q starts at the prior
    assert module.noise_dim == 6
    assert module.context_dim == 6


def test_inducing_inputs_are_centroids_and_the_tops_their_means():
    """k-means of the inputs, which the identity mean maps to the top; principal axes if the width
    is smaller."""
    from sklearn.cluster import KMeans

    data = problem(D=3)
    module = build(data, inner_dim=3)
    seed = int(torch.randint(2**31, (), generator=Streams(0).init))
    centres = KMeans(6, n_init=1, random_state=seed).fit(data.train.x.numpy()).cluster_centers_
    assert_close(module.inner.inducing, torch.from_numpy(centres))
    assert torch.equal(module.top.inducing, module.inner.inducing)
    narrow = build(data, inner_dim=2)
    axes = torch.linalg.svd(data.train.x - data.train.x.mean(0))[2][:2].T
    assert_close(narrow.top.inducing, narrow.inner.inducing @ axes)
    wide = build(data, inner_dim=5)
    assert torch.equal(wide.top.inducing[:, 3:], torch.zeros(6, 2, dtype=F64))


def test_context_of_a_row_is_its_input_and_label():
    data = problem(missing_row=1)
    context = build(data).context(data.train.part(slice(0, 3), 1.0))
    assert torch.equal(context[0], torch.cat([data.train.x[0], data.train.y[0]]))
    assert float(context[1, -1]) == 0.0


def test_kl_sums_over_every_process_of_both_layers():
    """Σ_l Σ_q KL[N(m, C Cᵀ) ‖ N(0, I)] by the densities of ``torch.distributions``."""
    module = build()
    total = 0.0
    for layer in (module.inner, module.top):
        law = MultivariateNormal(layer.q_mean, layer.q_tril @ layer.q_tril.mT)
        prior = MultivariateNormal(torch.zeros(6, dtype=F64), torch.eye(6, dtype=F64))
        total = total + kl_divergence(law, prior).sum()
    assert_close(module.kl(), total)


def test_bound_of_a_batch_sums_over_its_rows():
    data = problem()
    module = build(data)
    batch = data.train.part(slice(0, 10), 4.0)
    noise = noise_of(module, batch, 3)
    terms = module.elbo(batch, noise)
    assert_close(terms["log_likelihood"], 4.0 * module.elbo_rows(batch, noise).sum() / 3)
    assert_close(terms["elbo"], terms["log_likelihood"] - module.kl())


def test_missing_label_changes_nothing():
    data = problem(missing_row=2)
    module = build(data)
    batch = data.train.part(slice(0, 5), 1.0)
    noise = noise_of(module, batch)
    rows = module.elbo_rows(batch, noise)
    assert torch.equal(rows[:, 2], torch.zeros(2, dtype=F64))
    by_row, gradients, _ = row_gradients(module, batch, noise)
    assert by_row[2].abs().sum() == 0.0
    assert all(torch.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("top", ["sampled", "integrated"])
def test_gradients_by_row_equal_single_backward_passes(top):
    data = problem()
    module = build(data, top=top)
    batch = data.train.part(slice(3, 10), 5.0)
    noise = noise_of(module, batch, 2)
    rows, gradients, terms = row_gradients(module, batch, noise)
    parameters = list(module.parameters())
    for b in range(7):
        row_grad = grad(5.0 * module.elbo_rows(batch, noise)[:, b].mean(), parameters)
        assert_close(rows[b], flat(list(row_grad), parameters))
    whole, same = whole_gradient(module, batch, noise)
    assert_close(flat(gradients, parameters), flat(whole, parameters))
    assert_close(terms["elbo"], same["elbo"])


def test_curvature_in_the_noise_is_available():
    """Twice differentiable, as required by a Taylor expansion of the gradient; compared with
    central differences."""
    data = problem()
    module = build(data)
    batch = data.train.part(slice(0, 2), 1.0)
    parameters = list(module.parameters())

    def gradient(noise):
        value = module.elbo_rows(batch, noise).sum()
        return flat(list(grad(value, parameters, create_graph=True)), parameters)

    assert gradcheck(gradient, noise_of(module, batch, 1).requires_grad_(), fast_mode=True)


def test_predictions_integrate_the_top_and_keep_the_noise():
    """The mixture has the moments of draws of both layers and of η."""
    data = problem()
    module = build(data)
    x = data.train.x[:2]
    samples = module.sample_predictive(x, 4000, generator(0))
    assert samples.mu.shape == samples.v.shape == (4000, 2, 1)
    noise = normal(generator(9), 4000, 2, module.noise_dim)
    mean, variance = module.top_moments(x, noise)
    y = mean + (variance + 0.01).sqrt() * normal(generator(8), 4000, 2)
    error = y.std(0) / 4000**0.5
    assert ((samples.mean[:, 0] - y.mean(0)).abs() < 5 * error).all()
    assert torch.allclose(samples.variance[:, 0], y.var(0), rtol=0.15)


def test_several_tasks_are_refused():
    with pytest.raises(ConfigMismatchError, match=r"model=dgp: has one output, .*; use igp or mlp"):
        build_model("dgp", real())
