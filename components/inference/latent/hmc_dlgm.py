"""Deep latent Gaussian models trained with Hamiltonian Monte Carlo from the guide's draws."""

from __future__ import annotations

import torch

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.gradients.by_parameter import Gradients
from components.inference.latent.draws import sample_latents, split_gradient
from components.inference.latent.improved import HmcTrainingState, ImprovedLatents
from components.models.latent.generative import log_normal
from components.registry import register


@register("inference", "hmc_dlgm")
class HmcDlgm(ImprovedLatents):
    """HMC for deep latent Gaussian models: the decoder is trained on draws refined by Hamiltonian
    Monte Carlo.

        z_0 ~ q(z|x),   z_t ~ HMC(· | z_{t−1}) of p(z|x),  t = 1 … T
        θ ← θ + lr · Adam(N/B Σ_b ∇_θ log p(x_b, z_T) / N)
        φ ← φ + lr · Adam(N/B Σ_b ∇_φ [log p(x_b, z_0) − log q(z_0|x_b)] / N)

    The step size of a dimension of z is ε s(x).
    ∇_θ log p(x) = E[∇_θ log p(x, z) | x] (Fisher's identity): as T grows, the mean update of θ
    tends to the gradient of log p(x) itself, and equals it for any T if q is p(z|x); φ maximises
    its ELBO.  θ are the parameters of p(x, z).  ε is adapted at each step towards
    ``target_acceptance``, in units of the guide's s(x), unlike in the paper.  z [S, B, D]. Info:
    ``elbo`` of the guide at z_0, ``log_joint`` at z_T, both of the whole data set in nats,
    ``acceptance``, ``step_size``, the norm of the step's gradient.  The objective of θ is not a
    bound.

    Raises:
        NumericalError: the gradient is not finite.

    Source: Hoffman (2017), section 3; Neal (2011), section 5.3.2."""

    def gradient(
        self,
        module: LatentVariable[RowBatch],
        batch: RowBatch,
        eps: float,
        generator: torch.Generator,
    ) -> tuple[Gradients, Info]:
        """Gradient of every parameter, for the whole data set, and Info."""
        parameters = list(module.parameters())
        weight = batch.scale / self.n_samples
        start, m, s = sample_latents(module, batch, self.n_samples, generator)
        z, rate = self.improve(module, batch, start, eps * s.detach(), generator)
        joint = weight * module.log_joint(batch, z).sum()
        elbo = weight * (module.log_joint(batch, start) - log_normal(start, m, s)).sum()
        info = {
            "elbo": elbo.detach(),
            "log_joint": joint.detach(),
            "acceptance": rate,
        }
        return split_gradient(parameters, joint, elbo), info

    def step(
        self, state: HmcTrainingState, batch: RowBatch, rng: Rng
    ) -> tuple[HmcTrainingState, Info]:
        gradients, info = self.gradient(state.module, batch, state.eps, rng.noise)
        return self.climb(state, gradients, info, batch)
