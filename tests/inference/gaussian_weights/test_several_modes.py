"""Laplace around several modes: weights of a bimodal posterior against quadrature."""

import math

import pytest
import torch
from support.runs.configured import F64, double
from support.small.small_problems import component, real, train
from torch import nn

from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.inference.gaussian_weights.modes import SeveralModes, distinct

S = 1.5  # standard deviation of the prior
NOISE = 0.02


class TwoModes(nn.Module):
    """f(x; θ) = θ² e^{θ/2} x, one weight: y = x has a mode near −1.4, another near 0.8."""

    shares_weights = False

    def __init__(self, theta):
        super().__init__()
        self.theta = nn.Parameter(double([theta]))
        self.prior_std = double([S])

    def outputs(self, theta, x):
        f = theta.square() * (theta / 2).exp()  # [K, 1]
        x = x if x.ndim == 3 else x.expand(len(theta), -1, -1)
        return (f[:, None] * x)[..., None]

    def forward(self, x, generator=None):
        return self.outputs(self.theta[None], x)[0]

    def output_predictive(self, f):
        return GaussianMixture(f[..., 0], torch.full_like(f[..., 0], NOISE))

    def log_prob(self, f, batch):
        law = torch.distributions.Normal(f[..., 0], math.sqrt(NOISE))
        return law.log_prob(batch.y).sum(-1)

    def hyperprior(self):
        return self.theta.new_zeros(())

    def penalty(self):
        return -torch.distributions.Normal(0.0, S).log_prob(self.theta).sum()


ROWS = Batch(
    double([[0.8], [1.0], [1.2], [-0.9]]),
    double([[0.85], [0.95], [1.2], [-0.9]]),
    torch.ones(4, 1, dtype=torch.bool),
    1.0,
)


def climb_mode(theta):
    """The network at the mode uphill of θ."""
    network = TwoModes(theta)
    optimizer = torch.optim.LBFGS(
        network.parameters(), max_iter=100, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        loss = network.penalty() - network.log_prob(network(ROWS.x), ROWS).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return network


def several(*starts):
    laplace = component("inference", "laplace", hyperparameters="trained")
    return SeveralModes(
        tuple(distinct([laplace.around(climb_mode(start), ROWS) for start in starts])), 1000
    )


def masses():
    """log evidence, and the shares of θ < 0 and θ > 0, by quadrature."""
    grid = torch.linspace(-6, 6, 200_001, dtype=F64)
    network = TwoModes(0.0)
    f = network.outputs(grid[:, None], ROWS.x)
    law = torch.distributions.Normal(f[..., 0], math.sqrt(NOISE))
    log_joint = law.log_prob(ROWS.y).sum((1, 2))
    log_joint = log_joint + torch.distributions.Normal(0.0, S).log_prob(grid)
    p = (log_joint - log_joint.max()).exp() * (grid[1] - grid[0])
    return float(p.sum().log() + log_joint.max()), p[grid < 0].sum() / p.sum()


def test_weights_match_masses_of_modes():
    posterior = several(-1.4, 0.9, 0.8, -1.5)
    log_evidence, negative = masses()
    assert len(posterior.fits) == 2  # starts that reach the same mode count once
    is_negative = torch.tensor([float(f.network.theta) < 0 for f in posterior.fits])
    weight = float(posterior.weights[is_negative])
    assert weight == pytest.approx(float(negative), abs=0.01)
    assert abs(float(negative) - 0.5) > 0.02
    assert posterior.scores()["log_evidence"] == pytest.approx(log_evidence, abs=0.02)
    # weights from only the log joint, without the curvature, differ
    networks = [fit.network for fit in posterior.fits]
    logs = [f.log_prob(f(ROWS.x), ROWS).sum() - f.penalty() for f in networks]
    assert abs(float(torch.stack(logs).softmax(0)[0] - posterior.weights[0])) > 0.02


def test_prediction_weights_modes():
    posterior = several(-1.4, 0.8)
    x = double([[2.0]])
    prediction = posterior.predict(x, torch.Generator())
    each = [fit.predict(x, torch.Generator()) for fit in posterior.fits]
    expected = sum(w * p.mean for w, p in zip(posterior.weights, each, strict=True))
    assert prediction.mu.shape == (1000, 1, 1)
    assert float(prediction.mean) == pytest.approx(float(expected), abs=1e-3)
    assert sum(posterior.shares(7)) == 7


def test_modes_train_separately_and_resume():
    problem = real(n_tasks=1, missing=0.0, batch_size=10)
    model = component("model", "mlp", widths=[3], activation="tanh", noise=0.09)
    laplace = component("inference", "laplace", modes=3, lr=0.02, n_predict=50)
    state, _ = train(laplace, model, problem, 60)
    thetas = [state.network.theta, *(other.theta for other in state.others)]
    assert not torch.allclose(thetas[1], thetas[2])
    posterior = laplace.posterior(state)
    assert 1 <= len(posterior.fits) <= 3
    assert posterior.predict(problem.test.x, torch.Generator()).mu.shape[0] == 50
    reference, _ = train(component("inference", "laplace", lr=0.02), model, problem, 60)
    assert torch.equal(reference.network.theta, state.network.theta)
