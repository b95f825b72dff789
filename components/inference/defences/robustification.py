"""Robustification: particles trained on attacks that were computed against the undefended model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities.densities import PredictiveLogJoint
from components.contracts.problems import Batch
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import IncompleteResultWarning
from components.inference.chains import init_for_training
from components.inference.defences.particle_dynamics import (
    AdversarialChains,
    ParticleDefence,
    per_particle_gradient,
)
from components.inference.defences.training_threat import TrainingThreat, join
from components.inference.log_joint import value_and_gradient
from components.posteriors.particles import Particles
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(kw_only=True)
class RobustState(AdversarialChains):
    """1 + 2K particles, and the attacked rows for training the last K."""

    train: Batch = not_checkpointed()
    attacked: Tensor  # [K, N, D]


@register("inference", "robustification")
class Robustification(ParticleDefence[RobustState]):
    """Robustified classifier: K particles trained on clean and attacked rows in proportion 1:1.

    The attacks are computed for the undefended model.

    Models of one kind learn by v := μ v + η ∇log joint + N(0, 2 (1 − μ) η τ I), β := β + v,
    η = lr/N.  First, for ``undefended_steps`` steps and on clean rows only,
        the undefended model, β⁰, learns with τ = 0, and K draws b_i of its posterior describe the
        beliefs of an attacker that does not know β⁰.
    Then these stay fixed, the experiment's attacker changes the training set, at size
        ``train_eps``, to x_i ~ p_C(x'|x) against each b_i, and the K defended models, β_i, learn
        from the B clean rows of a step and B rows, drawn at random, of the x_i.
    This is the protocol of the thesis's spam case study, in which the attack is a discrete
    optimisation and cannot be sampled by (3.14).  In ``ara_training`` with
    ``defender_uncertainty: false`` the attacks are instead computed at every step against
    the defended β_i, by an attacker with knowledge of the defence.

    With ``against: undefended`` the test set is attacked against β⁰, as in the thesis; with
    ``against: defended``, against the mixture of the β_i.  β, v [1 + 2K, P]; attacked rows [K, N,
    D].

    Raises:
        ConfigMismatchError: the attacker is not an evasion attacker, or ``train_eps`` is not in the
            units of the inputs.
        NumericalError: a particle becomes non-finite.

    Source: Gallego (2021), section 3.6.1 and Algorithm 3.2.
    """

    undefended_steps: PositiveInt

    def init(self, model: PredictiveLogJoint, problem: Supervised, rng: Rng) -> RobustState:
        state = init_for_training(
            model, problem, self.requires.batch_kind, 1 + 2 * self.chains, rng
        )
        clean = problem.train.x.expand(self.chains, -1, -1).clone()
        threat = TrainingThreat(problem, self.train_eps, rng)
        velocity = torch.zeros_like(state.theta)
        return RobustState(
            **vars(state), velocity=velocity, attacked=clean, threat=threat, train=problem.train
        )

    def step(self, state: RobustState, batch: Batch, rng: Rng) -> tuple[RobustState, Info]:
        model = state.model
        K = self.chains
        train = state.train
        t = state.t + 1
        if state.t == self.undefended_steps:
            believed = state.theta[1 : 1 + K].split(1)
            attacks = [state.threat.attack(Particles(model, b), train, rng) for b in believed]
            state = replace(state, attacked=torch.stack(attacks))
        if state.t < self.undefended_steps:
            learning = slice(0, 1 + K)
            quiet = 1  # the undefended model
            value, gradient = value_and_gradient(model, state.theta[learning], batch)
        else:
            learning = slice(1 + K, None)
            quiet = 0
            rows = torch.randint(
                len(train.x), (len(batch.x),), generator=rng.noise, device=rng.noise.device
            )
            rows = rows.to(batch.x.device)
            attacked = Batch(state.attacked[:, rows], train.y[rows], train.mask[rows], 1.0)
            both = join(batch, attacked)
            value, gradient = per_particle_gradient(model, state.theta[learning], both)
        theta = state.theta.clone()
        velocity = state.velocity.clone()
        eta = self.lr / (batch.scale * len(batch.x))
        theta[learning], velocity[learning] = self.momentum_step(
            theta[learning],
            velocity[learning],
            gradient,
            eta,
            self.temperature,
            rng.noise,
            t,
            quiet=quiet,
        )  # eq. (3.15)
        info = {"log_joint": value.mean(), "grad_norm": gradient.norm(dim=1).max()}
        return replace(state, t=t, theta=theta, velocity=velocity), info

    def posterior(self, state: RobustState) -> Robustified:
        """The K current defended particles, with mean predictive p_C(y|x), and the undefended
        one."""
        if 0 < state.t <= self.undefended_steps:
            message = (
                f"the defence is untrained after {state.t} steps; "
                f"its training starts after {self.undefended_steps}"
            )
            warnings.warn(
                IncompleteResultWarning(
                    f"{message}; lower inference.undefended_steps or raise steps"
                ),
                stacklevel=1,
            )
        undefended = Particles(state.model, state.theta[:1])
        return Robustified(state.model, state.theta[1 + self.chains :], undefended)


@dataclass(frozen=True)
class Robustified(Particles):
    """Defended particles, and the undefended model, which attackers with ``against: undefended``
    use."""

    undefended: Particles
