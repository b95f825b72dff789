"""gpar: its chain of conditionals compared with manually built processes, imputation, and
predictions by draws of the earlier tasks."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import build_model, double, generator, normal
from support.small.shallow_gp_problems import F64, predict, problem
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.errors import ConfigMismatchError

QUICK = {"iterations": 3, "samples": 4, "lengthscale": 1.5, "variance": 1.0}


def build(p, **changes):
    return build_model("gpar", p, **{**QUICK, **changes})


def closed_downwards(n=18):
    """Rows with a label of a task have labels of all earlier tasks."""
    p = problem(n=n, keep=1.0)
    mask = torch.arange(n)[:, None] < torch.tensor([n, n - 4, n - 9])
    y = torch.where(mask, p.train.y, torch.nan)
    p.train = replace(p.train, y=y, mask=mask)
    return p


def matern52(a, b, rate):
    s = math.sqrt(5 * float(((a - b) * rate).square().sum()))
    return (1 + s + s * s / 3) * math.exp(-s)


def literal_kernel(gp, a, b, n_inputs):
    """k(x, x') + linear and nonlinear kernels of the earlier tasks, for one pair of rows."""
    total = 0.0
    for part in gp.covariance.parts:
        inner = part.inner
        columns = slice(0, n_inputs) if part is gp.covariance.parts[0] else slice(n_inputs, None)
        rate = (-inner.log_lengthscale[0]).exp()
        linear = float((a[columns] * rate) @ (b[columns] * rate))
        kappa = linear if inner.shape == "linear" else matern52(a[columns], b[columns], rate)
        total += float(inner.log_variance[0].exp()) * kappa
    return total


@torch.no_grad()
@pytest.mark.parametrize("outputs", ["linear", "nonlinear", "both"])
def test_likelihood_is_the_product_of_conditionals(outputs):
    # log p(y) = Σ_t log p(y_t | x, y_<t): eq. (3) of Requeima et al., every label in its row
    p = closed_downwards()
    module = build(p, outputs=outputs)
    with torch.enable_grad():
        fitted = module.fit(p.train, 0)
    x = p.train.x
    y = p.train.y
    for t, gp in enumerate(module.conditionals(fitted)):
        rows = p.train.mask[:, t]
        features = torch.cat([x[rows], y[rows, :t]], 1)  # observed labels, nothing imputed
        assert torch.equal(gp.labels.x[0], features)
        K = double([[literal_kernel(gp, a, b, 4) for a in features] for b in features])
        K += float(gp.likelihood.noise_variance) * torch.eye(len(K), dtype=F64)
        expected = MultivariateNormal(K.new_zeros(len(K)), K).log_prob(y[rows, t])
        marginal = gp.elbo(p.train, None)["log_likelihood"]
        assert float(marginal) == pytest.approx(float(expected), abs=1e-4)


def test_missing_labels_are_imputed_by_posterior_means():
    p = problem(n=16)
    mask = p.train.mask
    for denoise in (False, True):
        module = build(p, replace=denoise)
        fitted = module.fit(p.train, 0)
        first, second = module.conditionals(fitted)[:2]
        with torch.no_grad():
            mean = predict(first, p.train.x).mean[:, 0]
        rows = mask[:, 1]
        observed = mask[rows, 0]
        column = second.labels.x[0, :, -1]
        assert 0 < observed.sum() < len(observed)
        assert_close(column[~observed], mean[rows][~observed])
        expected = mean[rows] if denoise else p.train.y[rows, 0]
        assert_close(column[observed], expected[observed])


def test_task_is_learnt_without_later_ones():
    p = problem(n=16)
    fitted = build(p).fit(p.train, 0)
    mask = p.train.mask.clone()
    mask[::2, 2] = False
    less = build(p).fit(replace(p.train, mask=mask), 0)
    for key, value in fitted.items():
        if not key.startswith("2 "):
            assert torch.equal(value, less[key])
    assert not torch.equal(fitted["2 likelihood.raw_noise"], less["2 likelihood.raw_noise"])


def test_predictions_are_mixtures_over_draws_of_earlier_tasks():
    # y_2 = 2 y_1 exactly: var y_2 given x is 4 var y_1, which a plug-in of means would leave out
    p = problem(n=30, keep=1.0)
    y = p.train.y.clone()
    y[:, 0] = normal(generator(3), 30)
    y[:, 1] = 2 * y[:, 0]
    p.train = replace(p.train, y=y)
    changes = {"outputs": "linear", "iterations": 40, "samples": 400, "output_lengthscale": 1.0}
    module = build(p, **changes)
    fitted = module.fit(p.train, 0)
    with torch.no_grad():
        predictive = module.predict_fitted(fitted, p.test.x)
    assert predictive.mu.shape == (400, 11, 3)
    ratio = predictive.variance[:, 1] / predictive.variance[:, 0]
    assert torch.allclose(ratio, torch.full_like(ratio, 4.0), rtol=0.35)
    # the broken variant: separate components, without the spread of the draws
    assert predictive.v[:, :, 1].mean() < 0.5 * float(predictive.variance[:, 1].mean())


def test_tasks_are_ordered_by_key():
    p = problem(n=16)
    module = build(p, order=[3, 1, 2])
    fitted = module.fit(p.train, 0)
    assert torch.equal(fitted["0 y"], p.train.y[p.train.mask[:, 2], 2])
    # the first of the order is a process of the inputs only
    only_third = replace(p.train, y=p.train.y[:, 2:], mask=p.train.mask[:, 2:])
    part = replace(p, train=only_third, test=only_third)
    single = build(part)
    expected = single.predict_fitted(single.fit(only_third, 0), p.test.x).mean[:, 0].detach()
    third = module.predict_fitted(fitted, p.test.x).mean[:, 2].detach()
    assert_close(third, expected)
    for wrong in ([1, 2], [1, 1, 2], [0, 1, 2]):
        with pytest.raises(ConfigMismatchError, match=r"model\.order=.*tasks 1 to 3"):
            build(p, order=wrong)
