"""Code of a user: a network, a Gaussian process, a log density, and faulty variants."""

from __future__ import annotations

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.models import ApproximateGP, ExactGP
from gpytorch.priors import NormalPrior
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor, nn


class Net(nn.Module):
    """Network with batch normalisation, dropout, a parameter outside any layer, and two layers with
    shared weights."""

    def __init__(self, inputs: int = 2, outputs: int = 2, hidden: int = 3):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(0.3)
        self.second = nn.Linear(hidden, hidden)
        self.third = nn.Linear(hidden, hidden)
        self.third.weight = self.second.weight
        self.scale = nn.Parameter(torch.full((hidden,), 0.7))
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.norm(self.first(x)))
        return self.head(self.scale * torch.tanh(self.third(self.drop(torch.tanh(self.second(h))))))


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 2, 3, padding=1)
        self.head = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.convolution(x).relu().flatten(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 3, batch_first=True)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x[:, None])[0][:, -1])


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.kept = [self.layer.weight]

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.kept[0].T + self.layer.bias


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)  # for two inputs


class Exact(ExactGP):
    def __init__(self, train_x: Tensor, train_y: Tensor, likelihood: nn.Module):
        super().__init__(train_x, train_y, likelihood)
        self.mean = ConstantMean()
        self.kernel = ScaleKernel(RBFKernel(lengthscale_prior=NormalPrior(1.0, 2.0)))

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(x), self.kernel(x))


class Sparse(ApproximateGP):
    def __init__(self, inducing_points: Tensor, functions: int = 1):
        batch = torch.Size([functions] if functions > 1 else [])
        q = CholeskyVariationalDistribution(len(inducing_points), batch_shape=batch)
        super().__init__(VariationalStrategy(self, inducing_points, q))
        self.mean = ConstantMean(batch_shape=batch)
        self.kernel = ScaleKernel(RBFKernel(batch_shape=batch), batch_shape=batch)

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(x), self.kernel(x))


def log_density(theta: Tensor, sd: float = 1.0) -> Tensor:
    return -0.5 * (theta / sd).square().sum(1)


def beta_and_exponential(theta: Tensor) -> Tensor:
    """Beta(9, 3) and an exponential of mean 1, normalised: B(9, 3) = 1/495."""
    p, rate = theta.unbind(1)
    return 8 * p.log() + 2 * (1 - p).log() - rate + torch.tensor(495.0).log()


def of_each_coordinate(theta: Tensor) -> Tensor:
    return -0.5 * theta.square()


def of_all_rows(theta: Tensor) -> Tensor:
    return -0.5 * theta.square().sum().expand(len(theta))


def fails(theta: Tensor) -> Tensor:
    return theta @ torch.ones(7, dtype=theta.dtype)


def nowhere(theta: Tensor) -> Tensor:
    return theta.sum(1) - torch.inf


def numpyro_schools(y, sigma, J=None) -> None:
    """Eight schools in NumPyro."""
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(y)):
        eta = numpyro.sample("eta", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * eta)
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def numpyro_counts(observed=None) -> None:
    """NumPyro model with a discrete site, latent unless observed."""
    import numpyro
    import numpyro.distributions as dist

    numpyro.sample("n", dist.Bernoulli(0.3), obs=observed)


def pymc_schools(y, sigma, J=None):
    """Eight schools in PyMC."""
    import pymc

    with pymc.Model() as model:
        mu = pymc.Normal("mu", 0, 5)
        tau = pymc.HalfCauchy("tau", 5)
        eta = pymc.Normal("eta", 0, 1, shape=len(y))
        theta = pymc.Deterministic("theta", mu + tau * eta)
        pymc.Normal("y", theta, sigma, observed=y)
    return model


def pymc_counts(observed=None):
    """PyMC model with a discrete variable, free unless observed."""
    import pymc

    with pymc.Model() as model:
        pymc.Poisson("n", 3.0, observed=observed)
    return model
