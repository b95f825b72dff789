"""Training against an uncertain attacker: adversarial risk analysis with particles."""

from __future__ import annotations

from dataclasses import replace

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.attackers.evasion.langevin import beta_sizes, langevin, poisson_steps
from components.attackers.input_space import input_space
from components.contracts.capabilities.densities import PredictiveLogJoint
from components.contracts.problems import Batch
from components.contracts.roles import Info, PositivePair
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.chains import init_for_training
from components.inference.defences.particle_dynamics import (
    AdversarialChains,
    ParticleDefence,
    per_particle_gradient,
)
from components.inference.defences.training_threat import Mixture, TrainingThreat, labels, mixed
from components.posteriors.particles import BlockwiseParticles, Particles
from components.problems.supervised import Supervised
from components.registry import register


@register("inference", "ara_training")
class ARATraining(ParticleDefence[AdversarialChains]):
    """Adversarial risk analysis with K particles: SGLD on inputs attacked by SGLD.

    The first SGLD is over the parameters, the second over x.

    For every particle i, x_i ~ p_C(x'|x) and then
        v_i := μ v_i + η ∇(N/B Σ log p(y|x_i, β_i) + log p(β_i)) + N(0, 2 (1 − μ) η τ I),
        β_i := β_i + v_i,
    with η = lr/N, so that ``lr`` applies to the mean loss of a row, as in gradient descent, and
    with τ = 1 the particles sample the posterior given N rows.  The noise N(0, 2 lr I), which
    (3.15) implies for a mean loss, is too large for any network.  μ = 0 is SGLD, μ > 0 SGHMC. The
    rows x_i and the clean ones have equal weight if ``mixture`` is half.

    The two uncertainties have separate switches.  ``defender_uncertainty`` is the
    defender's uncertainty about the attack: x_i is a draw of (3.14), noise included, with
    ε ~ attack_step · train_eps · Beta for each row and T ~ Poisson for each step, kept
    within ``train_eps`` of x in L∞; without it, the experiment's own attacker perturbs x_i by
    ``train_eps``.  ``attacker_uncertainty`` is the attacker's uncertainty about the defender's
    parameters: the attacker faces draws of their posterior, and each x_i attacks β_i; without it τ
    = 0.  Without either, one particle is ``adversarial_training`` by gradient descent;
    ``train_eps`` = 0 is SGLD.  β, v [K, P].

    Raises:
        ConfigMismatchError: the attacker is not an evasion attacker, ``train_eps`` is not in
            the units of the inputs, or (3.14) would have to attack binary inputs.
        NumericalError: a particle becomes non-finite.

    Source: Gallego (2021), Algorithm 3.2, eqs (3.14) and (3.15); Chen et al. (2014),
    eq. (15) (momentum).
    """

    mixture: Mixture
    attacker_uncertainty: bool
    defender_uncertainty: bool
    attack_step: PositiveFloat
    attack_beta: PositivePair
    attack_steps: PositiveFloat
    attack_temperature: NonNegativeFloat

    def init(self, model: PredictiveLogJoint, problem: Supervised, rng: Rng) -> AdversarialChains:
        threat = TrainingThreat(problem, self.train_eps, rng)
        if self.defender_uncertainty and not input_space(problem).smooth:
            raise ConfigMismatchError(
                f"inference.defender_uncertainty: draws of (3.14) are continuous, but inputs of "
                f"{problem.name} are binary; use false, which trains against the experiment's "
                f"attacker"
            )
        state = init_for_training(model, problem, self.requires.batch_kind, self.chains, rng)
        return AdversarialChains(
            **vars(state), velocity=torch.zeros_like(state.theta), threat=threat
        )

    def attack(self, state: AdversarialChains, batch: Batch, rng: Rng) -> Tensor:
        """x_i ~ p_C(x'|x) for the rows of a batch, i = 1 … K: [K, B, D]."""
        model = state.model
        betas = state.theta.split(1)
        threat = state.threat
        if not self.defender_uncertainty:
            return torch.stack(
                [threat.attack(Particles(model, beta), batch, rng) for beta in betas]
            )
        x = batch.x.repeat(len(betas), 1)  # [K B, D]
        # one per training step, independent of the others
        T = poisson_steps(x[:1], self.attack_steps, rng.attack)
        attacked = langevin(
            threat.victim(BlockwiseParticles(model, state.theta)),
            x,
            labels(batch).repeat(len(betas), 1),
            rng.attack,
            step_size=beta_sizes(x, self.attack_step * threat.eps, self.attack_beta, rng.attack),
            steps=T.expand(len(x)),
            temperature=self.attack_temperature,
            radius=threat.eps,
        )
        return attacked.unflatten(0, (len(betas), -1))

    def step(
        self, state: AdversarialChains, batch: Batch, rng: Rng
    ) -> tuple[AdversarialChains, Info]:
        theta = state.theta
        t = state.t + 1
        attacked = self.attack(state, batch, rng)
        # [K], [K, P]
        value, gradient = per_particle_gradient(
            state.model, theta, mixed(batch, attacked, self.mixture)
        )
        eta = self.lr / (batch.scale * len(batch.x))
        temperature = self.temperature if self.attacker_uncertainty else 0.0
        theta, velocity = self.momentum_step(
            theta, state.velocity, gradient, eta, temperature, rng.noise, t
        )
        info = {
            "log_joint": value.mean(),
            "grad_norm": gradient.norm(dim=1).mean(),
            "attack_size": (attacked - batch.x).abs().amax(-1).mean(),
        }
        return replace(state, t=t, theta=theta, velocity=velocity), info

    def posterior(self, state: AdversarialChains) -> Particles:
        """The K current particles; their mean predictive is p_C(y|x) (section 3.5.1)."""
        return Particles(state.model, state.theta)
