"""Deep latent Gaussian models learnt with Hamiltonian Monte Carlo that begins at the guide's
draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.inference.latent.draws import sample_latents
from components.inference.point.descent import DescentKeys
from components.inference.semi_implicit.transitions import adapt_step_size
from components.inference.variational.ascent import TrainingState, climb
from components.maths.row_hamiltonian import transition
from components.models.latent.generative import log_normal
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass(kw_only=True)
class HmcTrainingState(TrainingState[LatentVariable[RowBatch]]):
    """A model and its guide in training."""

    eps: float  # step size in units of s(x)


def joint_field(
    module: LatentVariable[RowBatch], batch: RowBatch, z: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """log p(x, z) [S, B] twice, as what goes with a draw and as its density, and its gradient [S,
    B, D]."""
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        value = module.log_joint(batch, z)
        (gradient,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), value.detach(), gradient


@register("inference", "hmc_dlgm")
class HmcDlgm(
    Inference[LatentVariable[RowBatch], Unlabelled, RowBatch, HmcTrainingState], DescentKeys
):
    """HMC for deep latent Gaussian models: the decoder learns from draws that Hamiltonian Monte
    Carlo has improved.

        z_0 ~ q(z|x),   z_t ~ HMC(· | z_{t−1}) of p(z|x),  t = 1 … T,  ε s(x) the step size of a dimension
        θ ← θ + lr · Adam(N/B Σ_b ∇_θ log p(x_b, z_T) / N)
        φ ← φ + lr · Adam(N/B Σ_b ∇_φ [log p(x_b, z_0) − log q(z_0|x_b)] / N)

    ∇_θ log p(x) = E[∇_θ log p(x, z) | x] (Fisher's identity): the mean of θ's steps tends to the
    gradient of log p(x) itself as T grows, and is it for any T where q is p(z|x); φ climbs its
    ELBO.  θ are those parameters that p(x, z) has.  ε is steered from step to step to
    ``target_acceptance``, in units of the guide's s(x) (ours).  z [S, B, D]. Info: ``elbo`` of the
    guide at z_0, ``log_joint`` at z_T, both of the whole data set in nats, ``acceptance``,
    ``step_size``, the norm of the step's gradient.  What moves θ is no bound.

    Raises:
        NumericalError: the gradient has left the finite numbers.

    Source: Hoffman (2017), section 3; Neal (2011), section 5.3.2."""

    requires = Requirements(
        kinds=frozenset({"unlabelled"}), capabilities=frozenset({"latent_variable"})
    )
    provides: ClassVar[frozenset[str]] = frozenset({"bounds_likelihood", "holds_module"})

    improve_steps: PositiveInt
    leapfrog_steps: PositiveInt
    step_size: PositiveFloat
    target_acceptance: Annotated[float, Field(gt=0, lt=1)]
    n_samples: PositiveInt

    def init(
        self, model: LatentVariable[RowBatch], problem: Unlabelled, rng: Rng
    ) -> HmcTrainingState:
        optimizer = self.build_optimizer(model.parameters())
        return HmcTrainingState(
            module=model, optimizer=optimizer, gradient=None, eps=self.step_size
        )

    def gradient(
        self,
        module: LatentVariable[RowBatch],
        batch: RowBatch,
        eps: float,
        generator: torch.Generator,
    ) -> tuple[list[Tensor | None], Info]:
        """Gradient of every parameter, for the whole data set, and Info about it."""
        parameters = list(module.parameters())
        weight = batch.scale / self.n_samples
        start, m, s = sample_latents(module, batch, self.n_samples, generator)
        z = start.detach()
        rates = []
        for _ in range(self.improve_steps):
            z, _, rate = transition(
                lambda at: joint_field(module, batch, at),
                z,
                eps * s.detach(),
                self.leapfrog_steps,
                generator,
            )
            rates.append(rate.mean())
        joint = weight * module.log_joint(batch, z).sum()
        of_model = torch.autograd.grad(joint, parameters, allow_unused=True)
        elbo = weight * (module.log_joint(batch, start) - log_normal(start, m, s)).sum()
        rest = [p for p, g in zip(parameters, of_model, strict=True) if g is None]
        of_guide = iter(torch.autograd.grad(elbo, rest, allow_unused=True))
        info = {
            "elbo": elbo.detach(),
            "log_joint": joint.detach(),
            "acceptance": torch.stack(rates).mean(),
        }
        return [next(of_guide) if g is None else g for g in of_model], info

    def step(
        self, state: HmcTrainingState, batch: RowBatch, rng: Rng
    ) -> tuple[HmcTrainingState, Info]:
        gradients, info = self.gradient(state.module, batch, state.eps, rng.noise)
        norm = climb(
            state.module.parameters(), gradients, batch.scale * batch.n_rows, state.optimizer
        )
        if not torch.isfinite(norm):
            raise NumericalError(
                "the model has left the finite numbers", "lower inference.lr or inference.step_size"
            )
        info |= {"step_size": torch.tensor(state.eps), "grad_norm": norm}
        return replace(
            state, eps=adapt_step_size(state.eps, info["acceptance"], self.target_acceptance)
        ), info

    def posterior(self, state: HmcTrainingState) -> LatentPosterior:
        return LatentPosterior(state.module)
