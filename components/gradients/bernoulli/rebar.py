"""REBAR: the score function with a continuous relaxation as control variate."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.bernoulli.layers import logistic, uniform, with_log_odds
from components.maths.optimizers import Adam
from components.registry import register


class Relaxation(nn.Module):
    """A temperature λ and a coefficient η for each layer."""

    def __init__(self, layers: int, temperature: float, coefficient: float, like: Tensor):
        super().__init__()
        self.log_temperature = nn.Parameter(torch.full((layers,), temperature).log().to(like))
        self.coefficient = nn.Parameter(torch.full((layers,), coefficient).to(like))


@dataclass
class Relaxed:
    """The relaxation and its optimizer, which a static one never uses."""

    relaxation: Relaxation
    optimizer: Adam


@register("gradient", "rebar")
class REBAR(Gradient[BernoulliLayers[RowBatch], RowBatch, Relaxed]):
    """REBAR: f at a relaxed layer is a control variate whose mean is known by reparameterisation, one layer at a time.

        ∂/∂α_l E f = E[(f(z) − η c(ζ̃)) (z_l − σ(α_l)) + η ∂/∂α_l (c(ζ) − c(ζ̃))]
        ζ = α_l + logit u,   z_l = 1[ζ > 0],   ζ̃ ~ ζ | z_l,   c(ζ) = f(z_1, …, z_{l−1}, σ(ζ/λ), σ(α_{l+1}), …)

    The layers above l are at the means that follow from the relaxed one, so that c is smooth in ζ whatever they are: a draw
    of theirs would be a step function of ζ, and the path through it lost.  λ_l and η_l stay (``adapt: static``) or descend
    E[(∂/∂α_l)²] of a draw by Adam, after they have been used (dynamic): as the mean depends on neither, that is descent of
    the variance.  f and α [S, B, …].  Terms: elbo, of the whole data set in nats.

    Source: Tucker et al. (2017), section 3."""

    needs: ClassVar[frozenset[str]] = frozenset({"bernoulli_layers"})
    unbiased: ClassVar[bool] = True

    n_samples: PositiveInt
    adapt: Literal["static", "dynamic"]
    temperature: PositiveFloat
    coefficient: float
    lr: PositiveFloat

    def init(self, module: BernoulliLayers[RowBatch], rng: Rng) -> Relaxed:
        like = next(module.parameters())
        relaxation = Relaxation(module.n_layers, self.temperature, self.coefficient, like)
        return Relaxed(relaxation, Adam(relaxation.parameters(), self.lr))

    def estimate(
        self, module: BernoulliLayers[RowBatch], batch: RowBatch, rng: Rng, state: Relaxed
    ) -> tuple[list[Tensor | None], dict[str, Tensor], Relaxed]:
        scale, dynamic = batch.scale / self.n_samples, self.adapt == "dynamic"
        alphas: list[Tensor] = []
        z: list[Tensor] = []
        logits: list[Tensor] = []  # logit u
        for _ in range(module.n_layers):
            alphas.append(module.logits(batch, z).expand(self.n_samples, -1, -1))
            with torch.no_grad():
                logits.append(logistic(uniform(alphas[-1].shape, alphas[-1], rng)))
                z.append((alphas[-1] + logits[-1] > 0).to(alphas[-1]))
        log_joint = module.log_joint(batch, tuple(z))
        with torch.no_grad():
            f = log_joint - module.log_q(batch, tuple(z))  # [S, B]
        by_alpha = [
            self._of_layer(module, batch, rng, state.relaxation, z[: at + 1], alphas[at].detach(), logits[at], f)
            for at in range(module.n_layers)
        ]
        gradients = with_log_odds(module, scale * log_joint.sum(), alphas, [scale * g for g in by_alpha])
        if dynamic:
            state = _adapted(state, by_alpha)
        return gradients, {"elbo": batch.scale * f.mean(0).sum()}, state

    def _of_layer(
        self,
        module: BernoulliLayers[RowBatch],
        batch: RowBatch,
        rng: Rng,
        relaxation: Relaxation,
        z: list[Tensor],
        alpha: Tensor,
        noise: Tensor,
        f: Tensor,
    ) -> Tensor:
        """∂/∂α_l of each draw, unscaled [S, B, D_l]; a function of λ_l and η_l where these are adapted."""
        at, dynamic = len(z) - 1, self.adapt == "dynamic"
        eta, temperature = relaxation.coefficient[at], relaxation.log_temperature[at].exp()
        alpha = alpha.clone().requires_grad_()
        zero = (-alpha).sigmoid()  # P(z_l = 0)
        v = uniform(alpha.shape, alpha, rng)
        given = torch.where(z[at] > 0, zero + v * (1 - zero), v * zero)  # u given z_l
        zeta = torch.cat([alpha + noise, alpha + logistic(given)])  # ζ, ζ̃ [2 S, B, D]
        layers = [torch.cat([layer, layer]) for layer in z[:at]] + [(zeta / temperature).sigmoid()]
        while len(layers) < module.n_layers:
            layers.append(module.logits(batch, layers).sigmoid())
        c = module.log_joint(batch, tuple(layers)) - module.log_q(batch, tuple(layers))  # [2 S, B]
        free, conditional = c.chunk(2)
        (slope,) = torch.autograd.grad((free - conditional).sum(), alpha, create_graph=dynamic)
        score = (z[at] - alpha.sigmoid()).detach()
        return (f - eta * conditional)[..., None] * score + eta * slope


def _adapted(state: Relaxed, by_alpha: list[Tensor]) -> Relaxed:
    """The relaxation after a step down the mean square of ∂/∂α; the state given stays as it is."""
    square = torch.stack([g.square().sum(-1).mean() for g in by_alpha]).sum()
    found = torch.autograd.grad(square, list(state.relaxation.parameters()))
    after = copy.deepcopy(state)
    for parameter, gradient in zip(after.relaxation.parameters(), found, strict=True):
        parameter.grad = gradient
    after.optimizer.step()
    after.optimizer.zero_grad()
    return after
