"""A two-layer Bernoulli model of 3 + 3 units, independent of the package's models: bounds and
gradients are sums over all 64 states."""

from __future__ import annotations

import torch
from support.runs.configured import double, generator, normal
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.problems import Rows

UNITS = 3
VALUES = 4
Layers = tuple[Tensor, Tensor]


def log_bernoulli(z: Tensor, logits: Tensor) -> Tensor:
    """Σ_d log Bernoulli(z_d | sigmoid(logits_d)) over the last dimension."""
    return (z * logits - F.softplus(logits)).sum(-1)


class SmallBernoulli(nn.Module):
    """p(z₂) p(z₁|z₂) p(x|z₁) and q(z₁|x) q(z₂|z₁), all Bernoulli with affine logits; z = (z₁, z₂),
    [S, B, 3] each."""

    def __init__(self, seed: int = 0):
        super().__init__()
        g = generator(seed)

        def draw_weights(*shape: int) -> nn.Parameter:
            return nn.Parameter(normal(g, *shape))

        self.prior = draw_weights(UNITS)
        # z₂ -> logits of z₁
        self.down = draw_weights(UNITS, UNITS)
        self.down_bias = draw_weights(UNITS)
        # z₁ -> logits of x
        self.out = draw_weights(VALUES, UNITS)
        self.out_bias = draw_weights(VALUES)
        # x -> logits of q(z₁)
        self.inward = draw_weights(UNITS, VALUES)
        self.inward_bias = draw_weights(UNITS)
        # z₁ -> logits of q(z₂)
        self.up = draw_weights(UNITS, UNITS)
        self.up_bias = draw_weights(UNITS)

    @property
    def guide(self) -> list[str]:
        """Names of the parameters of q."""
        return ["inward", "inward_bias", "up", "up_bias"]

    @property
    def context_dim(self) -> int:
        return VALUES

    def context(self, batch: Rows) -> Tensor:
        return batch.x

    def log_q(self, batch: Rows, z: Layers) -> Tensor:
        z1, z2 = z
        first = log_bernoulli(z1, F.linear(batch.x, self.inward, self.inward_bias))
        return first + log_bernoulli(z2, F.linear(z1, self.up, self.up_bias))

    def log_joint(self, batch: Rows, z: Layers) -> Tensor:
        z1, z2 = z
        latent = log_bernoulli(z2, self.prior) + log_bernoulli(
            z1, F.linear(z2, self.down, self.down_bias)
        )
        return latent + log_bernoulli(batch.x, F.linear(z1, self.out, self.out_bias))

    @torch.no_grad()
    def sample(self, batch: Rows, n_samples: int, generator: torch.Generator) -> Layers:
        first = F.linear(batch.x, self.inward, self.inward_bias).sigmoid().expand(n_samples, -1, -1)
        z1 = torch.bernoulli(first, generator=generator)
        return z1, torch.bernoulli(
            F.linear(z1, self.up, self.up_bias).sigmoid(), generator=generator
        )


def rows(n: int = 1, copies: int = 1, scale: float = 1.0, seed: int = 1) -> Rows:
    """A row of ones and random rows, n in total, each repeated ``copies`` times."""
    g = generator(seed)
    x = torch.randint(0, 2, (n, VALUES), generator=g).double()
    x[0] = 1
    return Rows(x.repeat_interleave(copies, 0), scale)


def states(batch: Rows) -> Layers:
    """All 64 values of z for each row, ([64, B, 3], [64, B, 3])."""
    bits = torch.cartesian_prod(*[double([0.0, 1.0])] * (2 * UNITS))
    z = bits[:, None].expand(-1, batch.n_rows, -1)
    return z[..., :UNITS], z[..., UNITS:]


def log_ratio(module: SmallBernoulli, batch: Rows) -> tuple[Tensor, Tensor]:
    """log q and f = log q − log p at all states [64, B]."""
    z = states(batch)
    log_q = module.log_q(batch, z)
    return log_q, log_q - module.log_joint(batch, z)


def exact_elbo(module: SmallBernoulli, batch: Rows) -> Tensor:
    """N/B Σ_b Σ_z q(z|x_b) (log p(x_b, z) − log q(z|x_b)), differentiable in all parameters."""
    log_q, f = log_ratio(module, batch)
    return -batch.scale * (log_q.exp() * f).sum()


def exact_gradient(module: SmallBernoulli, batch: Rows) -> Tensor:
    """Gradient of ``exact_elbo`` by all parameters, concatenated [P]."""
    return flat(torch.autograd.grad(exact_elbo(module, batch), list(module.parameters())))


def flat(gradients: list[Tensor | None] | tuple[Tensor | None, ...]) -> Tensor:
    """Concatenate all gradients [P]; none may be missing."""
    assert all(g is not None for g in gradients)
    return torch.cat([g.flatten() for g in gradients if g is not None])
