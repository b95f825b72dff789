"""The variational contrastive divergence on the line by quadrature."""

import math

import torch
from support.runs.configured import F64, double
from support.targets.known_targets import z_score
from torch.distributions import Normal


def make_parameters(mean, log_std):
    """Parameters of q that are differentiated."""
    return [double(value).requires_grad_() for value in (mean, log_std)]


def vcd_by_quadrature(log_joint, mean, log_std, eps):
    """L_VCD of one iteration of one leapfrog step, differentiable in m and log s; f and q_0 both
    depend on them, and z is the grid."""
    q = Normal(mean, log_std.exp())
    x = torch.linspace(-8, 8, 801, dtype=F64)
    with torch.no_grad():
        z = (mean + log_std.exp() * x)[:, None]
        r = x[None]
        slope = torch.func.grad(lambda z: log_joint(z).sum())
        half = r + 0.5 * eps * slope(z)
        proposal = z + eps * half
        after = half + 0.5 * eps * slope(proposal)
        rate = (log_joint(proposal) - 0.5 * after**2 - log_joint(z) + 0.5 * r**2).clamp(max=0).exp()
        weight = Normal(0.0, 1.0).log_prob(r).exp() * (x[1] - x[0])

    def f(z):
        return log_joint(z) - q.log_prob(z)

    worth = (weight * (rate * f(proposal) + (1 - rate) * f(z))).sum(1)
    density = q.log_prob(z[:, 0]).exp() * (z[1, 0] - z[0, 0])
    return (density * (worth - f(z[:, 0]))).sum()


def check_contrast(log_joint, mean, std, eps, values, gradients):
    """Assert that values and gradients by m and log s have the exact means, which are not 0."""
    parameters = make_parameters(mean, math.log(std))
    exact = vcd_by_quadrature(log_joint, *parameters, eps)
    assert float(exact.detach()) > 0.02
    assert abs(z_score(torch.stack(values), exact.detach())) < 4
    expected = torch.stack(torch.autograd.grad(exact, parameters))
    assert z_score(torch.stack(gradients), expected).abs().max() < 4.5
