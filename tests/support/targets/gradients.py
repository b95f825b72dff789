"""Values and gradients of log densities."""

import torch


def value_and_gradient(log_density, theta):
    """Log density at θ [S, P], and its gradient."""
    theta = theta.clone().requires_grad_()
    value = log_density(theta)
    (gradient,) = torch.autograd.grad(value.sum(), theta)
    return value.detach(), gradient
