"""Guides q_0 for refinement: parameters of a log joint, and latent variables of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Batch
from components.contracts.sequences import Series
from components.errors import ConfigMismatchError
from components.inference.log_joint import log_joint
from components.inference.refined.path import Begun
from components.inference.variational.global_gaussian import GlobalGaussian


class PointGuide(nn.Module):
    """q(θ) = δ(θ − m), without a density; maximum a posteriori if it is not refined.

    Source: Gallego (2021), section 2.4.2 (State-space Markov models)."""

    def __init__(self, mean: Tensor):
        super().__init__()
        self.mean = nn.Parameter(mean.clone())

    @property
    def entropy(self) -> Tensor:
        return self.mean.new_zeros(())

    def transform(self, noise: Tensor) -> Tensor:
        """m, repeated to the shape of the noise [..., P]."""
        return self.mean.expand_as(noise)


class StepSize(nn.Module):
    """The step size η of the refinement kernel for D coordinates: a single one, or one for each (a
    diagonal metric).

    Raises ConfigMismatchError for any other number of step sizes."""

    def __init__(self, eta: float | Sequence[float], learn: bool, like: Tensor):
        super().__init__()
        value = like.new_tensor(eta)
        D = like.shape[-1]
        if value.dim() and len(value) != D:
            raise ConfigMismatchError(
                f"inference.eta: {len(value)} step sizes for {D} coordinates; give one, or {D} in "
                f"order"
            )
        self.log_eta = nn.Parameter(value.log(), requires_grad=learn)

    @property
    def eta(self) -> Tensor:
        return self.log_eta.exp()  # [] or [D]


def sample_parameter_guide(
    q: GlobalGaussian | PointGuide, model: LogJoint, batch: Batch | Series | None, noise: Tensor
) -> Begun:
    """Draws of θ from noise [S, B, P], with the log joint of all N rows as target.

    A minibatch gives an estimate of the target.
    """

    def target(z: Tensor) -> Tensor:
        return log_joint(model, z.flatten(0, 1), batch).unflatten(0, z.shape[:2])

    return Begun(q.transform(noise), q.entropy.expand(noise.shape[1]), target, 1.0)


def gaussian_entropy(s: Tensor) -> Tensor:
    """Entropy of N(·, diag s²), s [..., D] -> [...]."""
    return s.log().sum(-1) + 0.5 * s.shape[-1] * (1 + torch.log(s.new_tensor(2 * torch.pi)))
