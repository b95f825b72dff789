"""Reinforce with the other draws as baseline, and control variates from the derivatives of f at
these draws."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic

import torch
from pydantic import NonNegativeFloat
from torch import Tensor

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import AtLeastTwo, Gradient
from components.contracts.streams import Rng
from components.gradients.bernoulli.layers import assemble_guide_gradients
from components.gradients.bernoulli.learning import descend
from components.gradients.by_parameter import Estimate
from components.gradients.learnt import C, Learnt


def leave_one_out_mean(values: Tensor) -> Tensor:
    """(S − 1)⁻¹ Σ_{j≠s} v_j of v [S, …]."""
    return (values.sum(0) - values) / (len(values) - 1)


@dataclass(frozen=True)
class DrawsWithSlope:
    """S independent draws of all layers for each row, with f and its derivatives, all detached."""

    z: list[Tensor]  # z_l [S, B, D_l]
    probability: list[Tensor]  # σ(α_l)
    slope: list[Tensor]  # ∂f/∂z_l, with the other layers fixed
    f: Tensor  # log p(x, z) − log q(z|x) [S, B]


class LeaveOneOut(Gradient[BernoulliLayers[RowBatch], RowBatch, Learnt[C]], Generic[C]):
    """∂/∂α_l of E f from S draws z^s of all layers, each compared with the others.

    Cost: S evaluations of f and of its gradient.  The terms added to leave-one-out have mean 0
    given the layers below and the other draws, for any learned parameters.

    Raises:
        ConfigError: there is only one draw.
    """

    requires = Requirements(capabilities={BernoulliLayers})
    unbiased = True

    n_samples: AtLeastTwo
    lr: NonNegativeFloat

    @abstractmethod
    def by_alpha(self, control: C, draws: DrawsWithSlope) -> list[Tensor]:
        """∂/∂α_l of each draw, unscaled [S, B, D_l], as functions of the learned parameters."""

    def observe_draws(self, control: C, draws: DrawsWithSlope) -> None:
        """Update further statistics, if any, with draws that have been used."""

    def estimate(
        self, module: BernoulliLayers[RowBatch], batch: RowBatch, rng: Rng, state: Learnt[C]
    ) -> Estimate[Learnt[C]]:
        z: tuple[Tensor, ...] = module.sample(batch, self.n_samples, rng.noise)
        alphas = [module.logits(batch, z[:i]).expand_as(layer) for i, layer in enumerate(z)]
        leaves = tuple(layer.clone().requires_grad_() for layer in z)
        log_joint = module.log_joint(batch, leaves)
        f = log_joint - module.log_q(batch, leaves)  # [S, B]
        slope = torch.autograd.grad(f.sum(), leaves, retain_graph=True)
        draws = DrawsWithSlope(
            list(z), [alpha.detach().sigmoid() for alpha in alphas], list(slope), f.detach()
        )
        by_alpha = self.by_alpha(state.control, draws)
        scale = batch.scale / self.n_samples
        gradients = assemble_guide_gradients(
            module, scale * log_joint.sum(), alphas, [scale * g for g in by_alpha]
        )
        if self.lr:
            # compared draws are dependent
            descend(state, [g.mean(0, keepdim=True) for g in by_alpha])
        self.observe_draws(state.control, draws)
        return gradients, {"elbo": batch.scale * draws.f.mean(0).sum()}, state
