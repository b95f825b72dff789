"""mMDGP from GPyTorch's deep Gaussian processes, on the same padded rows as ours."""

from __future__ import annotations

import gpytorch
import torch
from gpytorch.models.deep_gps import DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor, nn

from components.contracts.problems import Batch
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.module import DGPNoise, MultiTaskDGP

JITTER = 1e-8  # GPyTorch also adds it to the variance at the data; small, so that the two bounds agree to 1e-6


class PeerLayer(DeepGPLayer):
    """GPyTorch's layer of a deep GP: whitened q(u), Matérn-5/2, one kernel and one Z for each
    process."""

    def __init__(self, ours: GPLayer, output_dims: int | None):
        batch = torch.Size(ours.inducing.shape[:1])
        M, D = ours.inducing.shape[1:]
        q = CholeskyVariationalDistribution(M, batch_shape=batch)
        strategy = VariationalStrategy(
            self, ours.inducing.detach().clone(), q, learn_inducing_locations=True
        )
        super().__init__(strategy, D, output_dims)
        ard = ours.log_lengthscale.shape[1]
        self.mean_module = gpytorch.means.ZeroMean(batch_shape=batch)
        base = gpytorch.kernels.MaternKernel(
            2.5, batch_shape=batch, ard_num_dims=ard if ard > 1 else None
        )
        self.covar_module = gpytorch.kernels.ScaleKernel(base, batch_shape=batch)
        self.to(ours.inducing)
        base.lengthscale = ours.log_lengthscale.detach().exp().unsqueeze(1)
        self.covar_module.outputscale = ours.log_variance.detach().exp()
        q.variational_mean.data = ours.q_mean.detach().squeeze(1).clone()
        q.chol_variational_covar.data = ours.q_tril.detach().squeeze(1).clone()
        strategy.variational_params_initialized.fill_(1)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Peer(nn.Module):
    """mMDGP from GPyTorch's classes, on the same padded rows."""

    def __init__(self, ours: MultiTaskDGP):
        super().__init__()
        layers = ours.layers()
        self.shared = PeerLayer(layers["shared 1"], layers["shared 1"].inducing.shape[0])
        self.specific = PeerLayer(layers["specific 1"], None)
        self.top = PeerLayer(layers["top"], None)
        T = ours.n_tasks
        constraint = gpytorch.constraints.GreaterThan(1e-6)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            batch_shape=torch.Size([T]), noise_constraint=constraint
        )
        self.to(layers["top"].inducing)
        self.likelihood.noise = ours.likelihood.noise_variance.detach().unsqueeze(-1)

    def elbo(self, batch: Batch, noise: DGPNoise) -> Tensor:
        layout = noise.layout
        shared = self.shared(batch.x)  # [S, B, P]
        g = shared.mean + shared.variance.sqrt() * noise.levels[0][0]
        specific = self.specific(batch.x[layout.rows])  # [S, T, n]
        h = specific.mean + specific.variance.sqrt() * noise.levels[0][1].squeeze(-1)
        features = torch.cat([g[:, layout.rows], h.unsqueeze(-1)], -1)  # [S, T, n, P + 1]
        f = self.top(features, are_samples=True)
        expected = self.likelihood.expected_log_prob(layout.labels(batch.y), f)
        kl = sum(
            layer.variational_strategy.kl_divergence().sum()
            for layer in (self.shared, self.specific, self.top)
        )
        return (expected * layout.weight).sum() * (batch.scale / expected.shape[0]) - kl


def relative_difference(a: Tensor, b: Tensor) -> float:
    return float(((a - b).norm() / b.norm()).detach())


def natural_gradients(layer: GPLayer) -> dict[str, Tensor]:
    """Gradients of a layer of ours in the parameters of peers, whose lengthscales and variances are
    no logarithms."""
    return {
        "Z": layer.inducing.grad,
        "lengthscale": layer.log_lengthscale.grad / layer.log_lengthscale.exp(),
        "variance": layer.log_variance.grad / layer.log_variance.exp(),
        "q_mean": layer.q_mean.grad.squeeze(1),
        "q_tril": layer.q_tril.grad.squeeze(1),
    }


def peer_gradients(layer: PeerLayer) -> dict[str, Tensor]:
    """The same of a layer of GPyTorch, which learns the inverse softplus of both."""
    q = layer.variational_strategy._variational_distribution
    base, scale = layer.covar_module.base_kernel, layer.covar_module
    lengthscale = base.raw_lengthscale.grad / torch.sigmoid(base.raw_lengthscale)
    return {
        "Z": layer.variational_strategy.inducing_points.grad,
        "lengthscale": lengthscale.squeeze(1),
        "variance": scale.raw_outputscale.grad / torch.sigmoid(scale.raw_outputscale),
        "q_mean": q.variational_mean.grad,
        "q_tril": q.chol_variational_covar.grad.tril(),
    }


def gradient_difference(ours: MultiTaskDGP, peer: Peer, batch: Batch, noise: DGPNoise) -> float:
    """Largest relative difference between the gradients, parameter by parameter, and between the
    bounds."""
    ours.zero_grad()
    peer.zero_grad()
    a = ours.elbo(batch, noise)["elbo"]
    b = peer.elbo(batch, noise)
    a.backward()
    b.backward()
    noise_gradient = peer.likelihood.noise_covar.raw_noise.grad.squeeze(-1)
    pairs = [(a, b), (ours.likelihood.raw_noise.grad, noise_gradient)]
    peers = (peer.shared, peer.specific, peer.top)
    for layer, other in zip(ours.layers().values(), peers, strict=True):
        theirs = peer_gradients(other)
        pairs += [(g, theirs[name]) for name, g in natural_gradients(layer).items()]
    return max(relative_difference(p, r) for p, r in pairs)
