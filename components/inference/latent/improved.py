"""Base of methods that train the decoder on draws of the guide refined by Hamiltonian Monte
Carlo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import BetweenZeroAndOne, Inference, Info
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.inference.latent.draws import joint_field
from components.inference.point.descent import DescentKeys
from components.inference.semi_implicit.transitions import adapt_step_size
from components.inference.variational.ascent import TrainingState, climb
from components.maths.row_hamiltonian import transition
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled


@dataclass(kw_only=True)
class HmcTrainingState(TrainingState[LatentVariable[RowBatch]]):
    """A model and its guide in training."""

    eps: float  # step size of the leapfrog
    control: float = 0.0  # c: difference of the objective between refined draws and the guide's


L = TypeVar("L", bound=TrainingState[LatentVariable[RowBatch]])


class LatentTraining(
    Inference[LatentVariable[RowBatch], Unlabelled, RowBatch, L], DescentKeys, Generic[L]
):
    """Base of methods that train a model of latent variables and its guide."""

    requires = Requirements(kinds={"unlabelled"}, capabilities={LatentVariable})

    n_samples: PositiveInt

    def posterior(self, state: L) -> LatentPosterior:
        return LatentPosterior(state.module)


class ImprovedLatents(LatentTraining[HmcTrainingState]):
    """Keys, adapted step size and posterior of these methods; they differ in the gradient of the
    guide."""

    improve_steps: PositiveInt
    leapfrog_steps: PositiveInt
    step_size: PositiveFloat
    target_acceptance: BetweenZeroAndOne

    def init(
        self, model: LatentVariable[RowBatch], problem: Unlabelled, rng: Rng
    ) -> HmcTrainingState:
        optimizer = self.build_optimizer(model.parameters())
        return HmcTrainingState(
            module=model, optimizer=optimizer, gradient=None, eps=self.step_size
        )

    def improve(
        self,
        module: LatentVariable[RowBatch],
        batch: RowBatch,
        z: Tensor,
        size: Tensor,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor]:
        """z [S, B, D] after iterations of HMC on p(z|x_b), without gradients, and the mean
        acceptance rate [].

        ``size`` [B, 1] or [B, D]: the step size of each row, or of each of its dimensions.

        Source: Neal (2011), section 5.3.2."""
        z = z.detach()
        field = partial(joint_field, module, batch)
        rates = []
        for _ in range(self.improve_steps):
            z, _, rate = transition(field, z, size, self.leapfrog_steps, generator)
            rates.append(rate.mean())
        return z, torch.stack(rates).mean()

    def climb(
        self,
        state: HmcTrainingState,
        gradients: Sequence[Tensor | None],
        info: Info,
        batch: RowBatch,
    ) -> tuple[HmcTrainingState, Info]:
        """One optimizer step, and ε for the next step adapted to ``acceptance`` of Info.

        Raises NumericalError if the gradient is not finite."""
        norm = climb(
            state.module.parameters(), gradients, batch.scale * batch.n_rows, state.optimizer
        )
        if not torch.isfinite(norm):
            raise NumericalError(
                "the gradient became non-finite", "lower inference.lr or inference.step_size"
            )
        info = info | {"step_size": torch.tensor(state.eps), "grad_norm": norm}
        eps = adapt_step_size(state.eps, info["acceptance"], self.target_acceptance)
        return replace(state, eps=eps), info
