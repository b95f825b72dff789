"""Adversarial training of a network."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import NonNegativeFloat

from components.contracts.attackers import Evasion
from components.contracts.capabilities import Penalised
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.defences.training_threat import Mixture, TrainingThreat, mixed
from components.inference.point.descent import DescentState, descend
from components.inference.point.network_descent import NetworkDescent
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class AdversarialDescentState(DescentState):
    """A network in training, and its training attacker."""

    threat: TrainingThreat = not_checkpointed()


@register("inference", "adversarial_training")
class AdversarialTraining(NetworkDescent[AdversarialDescentState]):
    """Adversarial training: fit one network to inputs attacked at size ``train_eps``.

    θ̂ = argmin_θ E_(x,y)[max_{‖δ‖≤ε} −log p(y|x + δ, θ)] − log p(θ)/N.  At each step
    ``training_attacker``, or otherwise the experiment's own attacker, solves the inner
    problem against the current θ at ε = ``train_eps``, and Adam or gradient descent takes
    one step of the outer problem.  If ``mixture`` is half, each minibatch consists of B clean rows
    and the B attacked ones.  Attacks that stop at their first success continue to their last step
    here.  ε = 0 is ``map``.

    Raises:
        ConfigMismatchError: the attacker is not an evasion attacker, or ``train_eps`` is not in the
            units of the inputs.

    Source: Gallego (2021), sections 3.3.2 and 3.5.1; Madry et al. (2018), eq. (2.1).
    """

    requires = Requirements(attacker=True)

    train_eps: NonNegativeFloat
    training_attacker: Evasion | None
    mixture: Mixture

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> AdversarialDescentState:
        optimizer = self.build_optimizer(model.parameters())
        threat = TrainingThreat(problem, self.train_eps, rng, self.training_attacker)
        return AdversarialDescentState(network=model, optimizer=optimizer, threat=threat)

    def step(
        self, state: AdversarialDescentState, batch: Batch, rng: Rng
    ) -> tuple[AdversarialDescentState, Info]:
        state.network.train(False)  # attackers use the network in prediction mode
        # the network itself, not a copy
        attacked = state.threat.attack(PointEstimate(state.network), batch, rng)
        state.network.train()
        return state, descend(
            state.network, state.optimizer, mixed(batch, attacked, self.mixture), None
        )
