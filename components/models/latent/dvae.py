"""The discrete variational auto-encoder: layers of binary latent variables, and their guide."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities.latent import PullBack
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_uniform
from components.models.latent.generative import BernoulliModel, log_bernoulli
from components.models.latent.perceptron import Perceptron
from components.problems.unlabelled import Unlabelled
from components.registry import register


class Factor(NamedTuple):
    """log Bernoulli(v | sigmoid(α)), α = network(h), v [S, B, D] or [B, D]; its derivative by α is
    v − sigmoid(α).

    If the first dimension of h is 1, all S draws share h, and their derivatives are summed before
    backpropagation through it."""

    log_prob: Tensor  # [S, B]
    error: Tensor  # v − sigmoid(α) [S, B, D]
    network: Perceptron
    given: list[Tensor]  # the other results of ``network.run``

    @classmethod
    def at(cls, v: Tensor, network: Perceptron, h: Tensor) -> Factor:
        """Factor of v with network input h [S, B, …], without autograd."""
        alpha, inputs = network.run(h)
        return cls(
            log_bernoulli(v, alpha), torch.sub(v, alpha.sigmoid_(), out=alpha), network, inputs
        )

    def pull_back(self, by: Tensor) -> list[Tensor]:
        """Σ_sb w_sb ∇ log Bernoulli(v_sb | sigmoid(α_sb)) for each parameter of the network in
        order, w [S, B]; callable once, because it overwrites large tensors."""
        c = self.error.mul_(by[..., None])
        return self.network.pull_back(
            self.given, c.sum(0, keepdim=True) if self.given[0].shape[0] == 1 else c
        )


Prior = Literal["half", "learned"]

# hidden layers between two neighbouring layers of a nonlinear model (Tucker et al. 2017, section 4)
HIDDEN = 2


def coins(p: Tensor, generator: torch.Generator) -> Tensor:
    """1 with probability p, else 0; four times faster than ``torch.bernoulli``."""
    return standard_uniform(p.shape, generator, p).lt_(p)


class BinaryAutoEncoder(nn.Module):
    """p(z_L) Π_l p(z_{l−1}|z_l) with z_0 = x, and q(z|x) = Π_l q(z_l|z_{l−1}).

    The factors are products of Bernoullis, z_l in {0, 1}^D. ``up`` are the networks of
    p(z_1|z_2), … and ``down`` the networks of q(z_1|x), q(z_2|z_1), ….
    """

    prior_logits: Tensor

    def __init__(
        self,
        visible: BernoulliModel,
        up: Sequence[Perceptron],
        down: Sequence[Perceptron],
        prior: Tensor,
        like: Tensor,
    ):
        super().__init__()
        self.visible = visible
        self.up = nn.ModuleList(up)
        self.down = nn.ModuleList(down)
        if isinstance(prior, nn.Parameter):
            self.prior_logits = prior  # [D]
        else:
            self.register_buffer("prior_logits", prior)
        self.layer_sizes = [len(network.layers[-1].bias) for network in down]
        self.row_shape = like.shape[1:]
        self.to(like)

    @property
    def n_layers(self) -> int:
        return len(self.down)

    @property
    def context_dim(self) -> int:
        return self.row_shape.numel()

    def context(self, batch: Rows) -> Tensor:
        return batch.x.flatten(1)  # [B, C]

    # q
    def logits(self, batch: Rows, below: Sequence[Tensor]) -> Tensor:
        h = below[-1] if below else batch.x.flatten(1)[None]  # [S, B, D], [1, B, I]
        alpha: Tensor = self.down[len(below)](h)
        return alpha

    def sample_with_log_q(
        self, batch: Rows, n_samples: int, generator: torch.Generator
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        z: list[Tensor] = []
        log_q = torch.zeros((), dtype=batch.x.dtype, device=batch.x.device)
        for _ in self.down:
            alpha = self.logits(batch, z)
            z.append(coins(alpha.detach().sigmoid().expand(n_samples, -1, -1), generator))
            log_q = log_q + log_bernoulli(z[-1], alpha)
        return tuple(z), log_q

    @torch.no_grad()
    def sample(self, batch: Rows, n_samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        z: list[Tensor] = []
        for _ in self.down:
            z.append(coins(self.logits(batch, z).sigmoid().expand(n_samples, -1, -1), generator))
        return tuple(z)

    def log_q(self, batch: Rows, z: Sequence[Tensor]) -> Tensor:
        parts = [
            log_bernoulli(layer, self.logits(batch, z[:index])) for index, layer in enumerate(z)
        ]
        return torch.stack(parts).sum(0)  # [S, B]

    @torch.no_grad()
    def draw_with_derivative(
        self, batch: Rows, n_samples: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, PullBack]:
        x = batch.x.flatten(1)
        z: list[Tensor] = []
        guide: list[Factor] = []
        for network in self.down:
            assert isinstance(network, Perceptron)
            alpha, inputs = network.run(z[-1] if z else x[None])
            p = alpha.sigmoid()
            z.append(coins(p.expand(n_samples, -1, -1), generator))
            guide.append(Factor(log_bernoulli(z[-1], alpha), z[-1] - p, network, inputs))
        networks = [self.visible.network, *self.up]
        model = [Factor.at(*factor) for factor in zip([x, *z[:-1]], networks, z, strict=True)]
        log_q = sum((factor.log_prob for factor in guide[1:]), guide[0].log_prob)
        log_joint = sum(
            (factor.log_prob for factor in model), log_bernoulli(z[-1], self.prior_logits)
        )

        def pull_back(by_q: Tensor, by_joint: Tensor) -> list[Tensor | None]:
            gradients: list[Tensor | None] = []  # in the order of ``parameters``
            if isinstance(self.prior_logits, nn.Parameter):
                error = z[-1] - self.prior_logits.detach().sigmoid()
                gradients.append((by_joint[..., None] * error).sum((0, 1)))
            for factors, by in ((model, by_joint), (guide, by_q)):
                for factor in factors:
                    gradients += factor.pull_back(by)
            return gradients

        return log_q, log_joint, pull_back

    # p
    def log_joint(self, batch: Rows, z: Sequence[Tensor]) -> Tensor:
        total = log_bernoulli(z[-1], self.prior_logits) + self.visible.log_prob(
            batch.x.flatten(1), z[0]
        )
        for network, below, above in zip(self.up, z[:-1], z[1:], strict=True):
            total = total + log_bernoulli(below, network(above))
        return total  # [S, B]

    def decode(self, z: Tensor) -> Tensor:
        return self.visible.mean(z).unflatten(-1, self.row_shape)  # z_1 [..., D] -> [..., …]

    @torch.no_grad()
    def sample_latent(self, n: int, generator: torch.Generator) -> Tensor:
        """z_1 ~ p(z_1) [n, D], from the top layer down."""
        z = coins(self.prior_logits.sigmoid().expand(n, -1), generator)
        for network in reversed(self.up):
            z = coins(network(z).sigmoid(), generator)
        return z


@register("model", "dvae")
class DVAE(Model[Unlabelled, BinaryAutoEncoder]):
    """Discrete variational auto-encoder of binary rows x with one or two binary latent layers.

        p(z_2) p(z_1|z_2) p(x|z_1),   q(z_1|x) q(z_2|z_1)

    Each factor is a product of Bernoullis; its log odds are an affine map of the conditioning
    values (linear) or a perceptron with two hidden layers of the same number of tanh units
    (nonlinear). p(z_2) has probabilities ½, fixed or as initial values. The log odds of x are
    initialised near the log odds of the mean training row. x [B, …], z_l [S, B, units].

    Source: Maddison, Mnih and Teh (2017), section 5; Tucker et al. (2017), section 4;
    Boustati (2021), appendix C.3.2 (its code reverses the arrow between z_1 and z_2 of p, which
    makes z_2 ineffective).
    """

    requires = Requirements(kinds={"unlabelled"}, values={"binary"})

    layers: Literal[1, 2]
    architecture: Literal["linear", "nonlinear"]
    units: PositiveInt
    prior: Prior

    def build(self, problem: Unlabelled, rng: Rng) -> BinaryAutoEncoder:
        rows = problem.train.x.flatten(1)
        sizes = [rows.shape[1]] + self.layers * [self.units]  # of x, z_1, z_2
        hidden = HIDDEN * [self.units] if self.architecture == "nonlinear" else []
        down = []
        up = []
        for below, above in itertools.pairwise(sizes):
            up.append(Perceptron([above, *hidden, below], "tanh", rng))
            down.append(Perceptron([below, *hidden, above], "tanh", rng))
        half = torch.zeros(self.units)
        prior = nn.Parameter(half) if self.prior == "learned" else half
        return BinaryAutoEncoder(
            BernoulliModel(up[0], rows.cpu()), up[1:], down, prior, problem.train.x
        )
