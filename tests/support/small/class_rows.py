"""Binary rows of three classes, a conditional auto-encoder of them, and its results by
quadrature."""

from __future__ import annotations

import math

import torch
from support.runs.configured import F64, component, generator

from components.contracts.problems import Batch
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

C = 3
INPUTS = 6
N = 40


def problem(n: int = N) -> Supervised:
    """Binary rows around one prototype per class."""
    g = generator(0)
    y = torch.arange(n) % C
    # unequal shares
    y[y == 1] = torch.where(torch.rand(int((y == 1).sum()), generator=g) < 0.5, 0, 1)
    centre = (torch.rand(C, INPUTS, generator=g) < 0.5).double()
    x = torch.where(torch.rand(n, INPUTS, generator=g) < 0.15, 1 - centre[y], centre[y])
    batch = Batch(x, y[:, None], torch.ones(n, 1, dtype=torch.bool), 1.0)
    return Supervised("small", "classes", batch, batch, None, C, ["y"], bounds=(0.0, 1.0))


def build_cvae(latent_dim: int = 1):
    """Model with weights so large that x depends on z and y, and a guide so wide that importance
    weights are bounded."""
    module = component("model", "cvae", latent_dim=latent_dim, widths=[5]).build(
        problem(), Streams(1)
    )
    with torch.no_grad():
        for p in module.generative.parameters():
            p.mul_(2)
        module.guide.second.layers[-1].bias.fill_(2.0)
    return module


def integrate_evidence(module) -> torch.Tensor:
    """log p(x|y = c) = log ∫ p(x|z, c) N(z|0, 1) dz of one latent dimension, on a fine grid [N,
    C]."""
    grid = torch.linspace(-9, 9, 4_001, dtype=F64)
    prior = -0.5 * grid.square() - 0.5 * math.log(2 * math.pi) + math.log(18 / 4_000)
    z = grid[:, None, None].expand(-1, N, 1)
    with torch.no_grad():
        up, out = module.generative.network.layers
        rows = []
        for c in range(C):
            y = torch.zeros(C, dtype=F64)
            y[c] = 1
            given = torch.cat([z, y.expand(*z.shape[:2], C)], -1)
            p = torch.sigmoid(torch.relu(given @ up.weight.T + up.bias) @ out.weight.T + out.bias)
            likelihood = torch.where(problem().train.x == 1, p, 1 - p).log().sum(-1)
            rows.append((likelihood + prior[:, None]).logsumexp(0))
    return torch.stack(rows, -1)
