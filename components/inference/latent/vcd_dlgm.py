"""Deep latent Gaussian models trained by the variational contrastive divergence."""

from __future__ import annotations

from dataclasses import replace

import torch

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.contracts.roles import Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.gradients.by_parameter import Gradients
from components.inference.latent.draws import sample_latents, split_gradient
from components.inference.latent.improved import HmcTrainingState, ImprovedLatents
from components.inference.refined.guides import gaussian_entropy
from components.models.latent.generative import log_normal
from components.registry import register


@register("inference", "vcd_dlgm")
class VcdDlgm(ImprovedLatents):
    """Variational contrastive divergence (VCD) for deep latent Gaussian models: guide and decoder
    are trained on draws refined by Hamiltonian Monte Carlo.

        L_VCD(x) = −E_q[f(z)] + E_{q^(t)}[f(z)] ≥ 0,   f = log p(x, z) − log q(z|x)
        z_0 ~ q(z|x),   z_T ~ HMC(· | z_0), T iterations on p(z|x) with step size ε
        θ ← θ + lr · Adam(N/B Σ_b ∇_θ log p(x_b, z_T) / N)
        φ ← φ − lr · Adam(N/B Σ_b ∇_φ L_VCD(x_b) / N)
        ∇_φ L_VCD = −∇_φ E_q[f] − E_{q^(t)}[∇_φ log q(z|x)] + E_{q(z_0)}[(w − C) ∇_φ log q(z_0|x)]
        w = f(z_T),   C_b = f(z′) + c,  z′ ~ q(z|x_b) a further draw

    The method is ``vcd`` with the encoder of the model in place of one Gaussian.  The first term
    uses reparameterised draws and the closed-form entropy.  c is the running mean of w − f(z′) over
    past steps; C does not depend on z_0, so the gradient stays unbiased (ours: the published code
    has a running mean of w for each image, which minibatches of fresh rows cannot update).  ε is
    absolute, because the gradient of L_VCD is correct only if HMC does not depend on φ.  L_VCD is 0
    if q is the posterior, and is not a bound; ``elbo`` is E_q[f].  z [S, B, D].
    Info: ``elbo``, ``improved`` (E_{q^(t)}[f]) and their difference ``vcd``, of the whole data set
    in nats; ``acceptance``, ``step_size``, the norm of the step's gradient.

    Raises:
        NumericalError: the gradient is not finite.

    Source: Ruiz and Titsias (2019), sections 2 and 3 and Algorithm 1."""

    decay: ZeroToBelowOne

    def contrast(
        self,
        module: LatentVariable[RowBatch],
        batch: RowBatch,
        eps: float,
        control: float,
        generator: torch.Generator,
    ) -> tuple[Gradients, Info, float]:
        """Gradient of every parameter, for the whole data set, Info about it, and the mean of
        w − f(z′)."""
        weight = batch.scale / self.n_samples
        start, m, s = sample_latents(module, batch, self.n_samples, generator)  # z_0 [S, B, D]
        with torch.no_grad():
            further = sample_latents(module, batch, self.n_samples, generator)[0]
            baseline = module.log_joint(batch, further) - log_normal(further, m, s)  # f(z′) [S, B]
        z, rate = self.improve(module, batch, start, eps * torch.ones_like(m[:, :1]), generator)
        joint = module.log_joint(batch, z)
        log_q = log_normal(z, m, s)
        worth = (joint - log_q).detach()  # w
        elbo = module.log_joint(batch, start) + gaussian_entropy(s)
        # value 0 if C = w, with the gradient of E_{q^(t)}[f]
        improved = (worth - baseline - control) * log_normal(start.detach(), m, s) - log_q
        gradients = split_gradient(
            list(module.parameters()), weight * joint.sum(), weight * (elbo - improved).sum()
        )
        bound = weight * elbo.detach().sum()
        info = {
            "elbo": bound,
            "improved": weight * worth.sum(),
            "vcd": weight * worth.sum() - bound,
            "acceptance": rate,
        }
        return gradients, info, float((worth - baseline).mean())

    def step(
        self, state: HmcTrainingState, batch: RowBatch, rng: Rng
    ) -> tuple[HmcTrainingState, Info]:
        gradients, info, gain = self.contrast(
            state.module, batch, state.eps, state.control, rng.noise
        )
        state, info = self.climb(state, gradients, info, batch)
        control = self.decay * state.control + (1 - self.decay) * gain
        return replace(state, control=control), info
