"""The hidden Markov model compared with the sum over all paths."""

import itertools
import math

import pytest
import torch
from support.runs.configured import F64, component, double, generator
from torch.distributions import Dirichlet

from components.contracts.sequences import Series
from components.errors import ConfigMismatchError
from components.series.maths.dirichlet import log_dirichlet
from components.series.models.hmm import HiddenMarkovModule
from components.series.sequence import Sequence
from runner.execution.rng import Streams

S = 3
C = 4


def model(a=0.7, b=1.3):
    return HiddenMarkovModule(S, C, a, b, torch.zeros(1, dtype=F64))


def thetas(n=4):
    return model().sample_prior(n, generator(0))


def series(*x):
    return Series(double(x).view(1, -1, 1))


def split(values):
    """A [..., S, S] and B [..., S, C] of the rows of a module."""
    return values[..., : S * S].unflatten(-1, (S, S)), values[..., S * S :].unflatten(-1, (S, C))


def by_paths(values, x):
    """Σ over all z of p(z_1) Π A Π B as in (2.14); a missing x has no factor."""
    A, B = split(values)
    total = 0.0
    for z in itertools.product(range(S), repeat=len(x)):
        p = 1 / S
        for t, state in enumerate(z):
            if t > 0:
                p *= float(A[z[t - 1], state])
            if not math.isnan(x[t]):
                p *= float(B[state, int(x[t])])
        total += p
    return total


@pytest.mark.parametrize(
    "x", [[2.0], [0.0, 3.0], [0, 1, 3, 3, 2.0], [1, math.nan, 0, 2, 2, 1.0], [math.nan, 1.0]]
)
def test_likelihood_equals_the_sum_over_paths(x):
    theta = thetas()
    log_lik = model().log_likelihood(theta, series(*x))
    assert log_lik.shape == (4, 1)
    exact = [math.log(by_paths(values, x)) for values in model().constrain(theta)]
    assert torch.allclose(log_lik[:, 0], double(exact), atol=1e-12)


def test_forecast_equals_a_ratio_of_sums_over_paths():
    theta = thetas()
    x = [0, 1, 3, 1.0]
    forecast = model().forecast(theta, series(*x), 3).logits.exp()  # [K, 3, 1, C]
    for k, values in enumerate(model().constrain(theta)):
        for h in range(3):
            for c in range(C):
                exact = by_paths(values, [*x, *[math.nan] * h, float(c)]) / by_paths(values, x)
                assert float(forecast[k, h, 0, c]) == pytest.approx(exact, rel=1e-10)


def test_rows_are_probabilities_and_have_names():
    values = model().constrain(thetas())
    assert len(model().names) == values.shape[1] == S * S + S * C
    for rows in split(values):
        assert torch.allclose(rows.sum(-1), torch.ones(4, S, dtype=F64))


def test_prior_has_the_jacobian():
    """log p(θ) = log p(rows) + log |det ∂(rows without their last)/∂θ|, with the determinant by
    automatic differentiation."""
    m = model()
    theta = thetas(2)

    def free(t):
        return torch.cat([rows[:, :-1].flatten() for rows in split(m.constrain(t[None])[0])])

    laws = [Dirichlet(torch.full((n,), a, dtype=F64)) for n, a in ((S, 0.7), (C, 1.3))]
    for t, log_p in zip(theta, m.log_prior(theta), strict=True):
        exact = torch.autograd.functional.jacobian(free, t).slogdet().logabsdet
        for law, rows in zip(laws, split(m.constrain(t[None])[0]), strict=True):
            exact = exact + law.log_prob(rows).sum()
        assert log_p == pytest.approx(float(exact), rel=1e-9)


def test_prior_draws_are_dirichlet():
    values = model().constrain(model().sample_prior(4000, generator(1)))
    A = split(values)[0].flatten(0, 1)  # 12,000 rows of Dir(0.7)
    variance = (1 / S) * (1 - 1 / S) / (S * 0.7 + 1)
    assert A.mean(0).numpy() == pytest.approx(1 / S, abs=4 * math.sqrt(variance / 12000))
    assert A.var(0).numpy() == pytest.approx(variance, rel=0.05)


def test_gradient_equals_finite_differences():
    theta = thetas(1).requires_grad_()
    data = series(0, 1, 3, 3, 2, 0, 1)
    assert torch.autograd.gradcheck(
        lambda t: model().log_likelihood(t, data) + model().log_prior(t), theta
    )


def test_long_series_equal_the_stepwise_recursion():
    theta = thetas(2)
    x = torch.arange(700) % C
    log_lik = model().log_likelihood(theta, series(*x.double().tolist()))[:, 0]
    for values, value in zip(model().constrain(theta), log_lik, strict=True):
        A, B = split(values)
        alpha = torch.full((S,), 1 / S, dtype=F64)
        total = 0.0
        for t in range(700):
            alpha = (alpha if t == 0 else alpha @ A) * B[:, x[t]]
            total += math.log(float(alpha.sum()))
            alpha = alpha / alpha.sum()
        assert float(value) == pytest.approx(total, rel=1e-11)


def test_log_dirichlet_is_finite_in_the_corner():
    log_x = double([-800.0, 0.0])  # exp underflows
    assert float(log_dirichlet(log_x, 2.0)) == pytest.approx(math.log(6) - 800)


class Classes:
    n_classes = 2


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0.0, 2.0]], "class numbers 0 to 1"),
        ([[0.5, 1.0]], "class numbers"),
        ([[0.0], [1.0]], "only one univariate series"),
    ],
)
def test_series_that_are_not_classes_are_refused(y, message):
    problem = Sequence("odd", None, torch.tensor(y).unsqueeze(-1), Classes(), ["z"])
    with pytest.raises(ConfigMismatchError, match=message):
        component("model", "hmm").build(problem, Streams(0))
