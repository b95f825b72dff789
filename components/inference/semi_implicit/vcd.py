"""The variational contrastive divergence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.requirements import Requirements
from components.contracts.roles import BetweenZeroAndOne, Info, ZeroToBelowOne
from components.contracts.states import placed
from components.contracts.streams import Rng
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    ModelBatch,
    SampleableProblem,
)
from components.inference.log_joint import log_joint
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.semi_implicit.fitting import CHUNK
from components.inference.semi_implicit.transitions import adapt_step_size, iterate
from components.inference.variational.ascent import ascend_value
from components.inference.variational.global_gaussian import GlobalGaussian
from components.inference.variational.guide_fit import GuideState, SeededGuide
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.variational import RefinedPosterior
from components.registry import register


@dataclass(kw_only=True)
class VCDState(GuideState[GlobalGaussian]):
    """q(θ) in training, the chain that refines its draws, and the seed of the returned draws."""

    step_size: float  # ε of the chain
    # C, the running mean of the values of refined draws []; None before the first step
    control: Tensor | None = placed()


@register("inference", "vcd")
class VCD(SeededGuide[VCDState]):
    """Variational contrastive divergence (VCD): a Gaussian q with draws refined by HMC.

    A few iterations of HMC take the draws from q to q^(t).

        L_VCD = KL(q ‖ p) − KL(q^(t) ‖ p) + KL(q^(t) ‖ q)
              = −E_q[f(z)] + E_{q^(t)}[f(z)] ≥ 0,   f = log p(x, z) − log q(z)
        ∇L_VCD = −∇E_q[f] − E_{q^(t)}[∇log q(z)] + E_{q(z_0)}[(w(z_0) − C) ∇log q(z_0)],
        w(z_0) = E[f(z_t) | z_0]

    q(z) = N(m, L Lᵀ), z [S, P]; z_t results from ``improve_steps`` iterations of HMC on the
    log joint of all rows from z_0.  The gradient of the first term uses reparameterised
    draws with the entropy in closed form, w is estimated by the single z_t, and C is a
    running mean of w over past steps, which leaves the gradient unbiased (at the first step
    the mean of its own S).  L_VCD is 0 if q is the target; as t → ∞ it is the symmetrised
    KL, for which q is wider than for KL(q ‖ p).  L_VCD is not a bound; E_q[f] is one, called
    ``elbo`` in Info and ``nelbo`` in the posterior, and q^(t) is at least as close.  The posterior
    is two chains of draws, refined ``infer_steps`` times.  Step sizes are adapted to
    ``target_acceptance`` at every step.
    Info: ``elbo`` and ``improve`` (E_{q^(t)}[f]) in nats, their difference L_VCD,
    acceptance and step size.

    Raises:
        NumericalError: the log joint is not finite at the initial q, or q becomes non-finite.
        ConfigMismatchError: the log joint cannot be differentiated.

    Source: Ruiz and Titsias (2019), sections 2 and 3 and Algorithm 1.
    """

    requires = Requirements(
        batch_kind="whole",
    )

    improve_steps: PositiveInt
    infer_steps: NonNegativeInt | None
    leapfrog_steps: PositiveInt
    step_size: PositiveFloat
    target_acceptance: BetweenZeroAndOne
    decay: ZeroToBelowOne
    covariance: Literal["diagonal", "full"]

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> VCDState:
        mean = self.find_mean(model, problem, rng)
        q = GlobalGaussian(
            RowwiseLogJoint.of(model, problem),
            mean,
            self.initial_std,
            self.covariance == "full",
            "shared",
        )
        begun = self.begin(q, model, problem, rng)
        return VCDState(**vars(begun), step_size=self.step_size)

    def step(self, state: VCDState, batch: ModelBatch, rng: Rng) -> tuple[VCDState, Info]:
        q = state.q
        model = state.model
        z = q.transform(self._noise(q, self.n_samples, rng.noise))  # z_0 [S, P]
        joint = log_joint(model, z, batch)
        elbo = joint.mean() + q.entropy
        states, rate = iterate(
            model, batch, z, self.improve_steps, self.leapfrog_steps, state.step_size, rng.noise
        )
        z_end = states[-1]
        z_start = z.detach()
        log_q = q.log_density(z_end)
        with torch.no_grad():
            worth = log_joint(model, z_end, batch) - log_q  # w(z_0) = f(z_t) [S]
            control = worth.mean() if state.control is None else state.control
        # value 0, with the gradient of E_{q^(t)}[f]
        improved = ((worth - control) * q.log_density(z_start) - log_q).mean()
        norm = ascend_value(q, elbo - improved, batch, state.optimizer)
        info = {
            "elbo": elbo.detach(),
            "improved": worth.mean(),
            "vcd": worth.mean() - elbo.detach(),
        }
        info |= {
            "acceptance_rate": rate,
            "step_size": torch.tensor(state.step_size),
            "grad_norm": norm,
        }
        control = self.decay * control + (1 - self.decay) * worth.mean()
        eps = adapt_step_size(state.step_size, rate, self.target_acceptance)
        return replace(state, step_size=eps, control=control), info

    def _noise(self, q: GlobalGaussian, n: int, generator: torch.Generator) -> Tensor:
        return standard_normal((n, len(q.mean)), generator, q.mean)

    def posterior(self, state: VCDState) -> RefinedPosterior:
        q = state.q
        model = state.model
        train = state.train
        steps = self.improve_steps if self.infer_steps is None else self.infer_steps
        generator = torch.Generator(q.mean.device).manual_seed(state.seed)
        theta = []
        bounds = []
        with torch.no_grad():
            for z in q.transform(self._noise(q, INDEPENDENT_CHAINS * self.draws, generator)).split(
                CHUNK
            ):
                bounds.append(log_joint(model, z, train) + q.entropy)
                if steps:
                    z = iterate(
                        model, train, z, steps, self.leapfrog_steps, state.step_size, generator
                    )[0][-1]
                theta.append(z)
        start = q.mean.detach().expand(INDEPENDENT_CHAINS, -1)
        return self.to_posterior(model, torch.cat(theta), start, torch.cat(bounds))
