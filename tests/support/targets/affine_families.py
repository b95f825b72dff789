"""Semi-implicit families with a known Gaussian marginal, Gaussian targets, and gradients of a
step."""

from __future__ import annotations

import torch
from support.runs.configured import component, double
from support.targets.known_targets import GaussianTarget
from torch import Tensor, nn

from runner.execution.rng import Streams

WEIGHT = double([[0.9, 0.2], [-0.4, 0.7]])
BIAS = double([0.3, -0.5])
STD = double([0.6, 0.8])
COVARIANCE = WEIGHT @ WEIGHT.T + STD.square().diag()


def target() -> GaussianTarget:
    """Unnormalised correlated Gaussian in the plane."""
    mean = double([0.8, -0.2])
    return GaussianTarget(mean, double([[1.0, 0.5], [0.5, 1.5]]))


def log_normaliser(model: GaussianTarget) -> float:
    return float(0.5 * torch.logdet(2 * torch.pi * model.covariance))


def parameters(q: nn.Module) -> list[Tensor]:
    """W, b and log s of an affine family."""
    (layer,) = q.network.layers
    return [layer.weight, layer.bias, q.log_std]


def affine(name: str, model=None, **changes):
    """Inference of an affine family, its state fixed at the values above, and its streams."""
    still = {"optimizer": "sgd", "momentum": 0.0, "lr": 1e-30}
    inference = component("inference", name, **{"widths": [], "noise_dim": 2, **still, **changes})
    rng = Streams(0)
    state = inference.init(target() if model is None else model, None, rng)
    with torch.no_grad():
        for held, value in zip(parameters(state.q), (WEIGHT, BIAS, STD.log()), strict=True):
            held.copy_(value)
    return inference, state, rng


def gradients(inference, state, rng, steps: int, of=parameters, batch=None) -> Tensor:
    """Gradients of ``steps`` steps at fixed parameters, concatenated in a row [steps, …]."""
    rows = []
    for _ in range(steps):
        state, _ = inference.step(state, batch, rng)
        rows.append(torch.cat([-p.grad.flatten() for p in of(state.q)]))
    return torch.stack(rows)


def flat(values) -> Tensor:
    return torch.cat([value.detach().flatten() for value in values])


def marginal(weight: Tensor, log_std: Tensor) -> Tensor:
    """Covariance of z [P, P]."""
    return weight @ weight.T + (2 * log_std).exp().diag()


def clone_parameters() -> list[Tensor]:
    """Clones of W, b and log s that require gradients."""
    return [value.clone().requires_grad_() for value in (WEIGHT, BIAS, STD.log())]


def exact_elbo(weight: Tensor, bias: Tensor, log_std: Tensor, model: GaussianTarget) -> Tensor:
    """E_q[log p] + H(q) of the marginal N(b, W Wᵀ + diag s²)."""
    C = marginal(weight, log_std)
    centred = bias - model.mean
    fit = -0.5 * ((model.precision * C).sum() + centred @ model.precision @ centred)
    return fit + 0.5 * torch.logdet(2 * torch.pi * torch.e * C)
