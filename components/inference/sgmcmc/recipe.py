"""Stochastic gradient MCMC by the recipe of Ma et al. with any diffusion and curl."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

import torch
from pydantic import FiniteFloat, PositiveFloat, model_validator
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.contracts.user_code import ImportPath, import_object
from components.inference.chains import ModelBatch, SampleableProblem, mean_over_chains
from components.inference.sgmcmc.control_variates import ControlledChains, GradientNoise
from components.inference.sgmcmc.dynamics import GradientDynamics
from components.inference.sgmcmc.recipe_terms import (
    Kinetics,
    RecipeTerms,
    any_matrices,
    check_matrices,
    energy_gradient,
    hamiltonian,
    langevin,
    potential_metric,
)
from components.inference.superchains import Superchains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class RecipeState(ControlledChains):
    rest: Tensor  # z without θ: momenta, then the thermostat [K, n − P]
    V: Tensor  # variances of the gradients [K, P]


@register("inference", "recipe")
class Recipe(Superchains, GradientDynamics[RecipeState], GradientNoise):
    """Stochastic gradient MCMC by diffusion D(z) and curl Q(z), parallel chains.

        z_{t+1} = z_t + ε_t {Γ(z_t) − [D(z_t) + Q(z_t)] ∇H(z_t)} + N(0, ε_t (2 D(z_t) − ε_t B̂_t))
        Γ_i(z) = Σ_j ∂(D_ij + Q_ij)/∂z_j,   B̂_t = M V̂_t Mᵀ
        H(z) = −log p(θ, y) + K(r) + (P/2) (ξ − A)²

    θ [K, P] is a part of z [K, n]; M are the columns of D + Q at θ, V̂ the variances of the
    minibatch gradient (0 without ``noise_estimate``).  Every D ⪰ 0 and Q = −Qᵀ leaves exp(−H), and
    hence the posterior, invariant as ε → 0.  ``dynamics``, A is ``friction``:

        langevin     z = θ          D = G                Q = 0               G = I: ``sgld``
        hamiltonian  z = (θ, r)     D = [0 0; 0 A G]     Q = [0 −√G; √G 0]   G = I: ``sghmc``
        thermostat   z = (θ, r, ξ)  D = diag(0, A G, 0)  Q = [0 −√G 0; √G 0 v/P; 0 −vᵀ/P 0]
        thermostats  z = (θ, r, ξ)  D = diag(0, A G, 0)  Q = [0 −√G 0; √G 0 diag v; 0 −diag v 0]

    with v = ∇K(r), K = rᵀr/2m of ``mass`` m.  thermostat is the Nosé–Hoover thermostat: ξ replaces
    the friction and adapts to the gradient noise, ṙ = ∇log p − ξ r and ξ̇ = rᵀr/P − 1 for G = I,
    where −1 is Γ.  thermostats has a separate ξ for each coordinate, with ½ |ξ − A|² in H, like
    ``santa``, whose preconditioner follows past gradients.  A finite ``speed`` c makes the dynamics
    relativistic, K(r) = m c² Σ_j √(1 + r_j²/(m c)²) and v_j = r_j/(m √(1 + r_j²/(m c)²)): no
    coordinate moves faster than c, for gradients of any size. ``metric``: constant G = I, or
    potential G = s √|U(θ) + c| I, U = −log p(θ, y), with long steps where the density is low.
    ``matrices`` replaces D and Q by a function of one z [n] that returns both [n, n]; ``dynamics``
    then defines z, and a step computes n² numbers for each of n directions.  ``updates`` together
    is the published update; in_turn updates r and ξ at the new θ, as ``sghmc`` does.  The published
    equation has −Γ, for which the posterior is not invariant.

    Raises:
        ConfigMismatchError: ``noise_estimate`` has no batch to split; the function of ``matrices``
        does not exist or breaks its contract.
        NumericalError: a chain becomes non-finite.

    Source: Gallego (2021), eqs. (1.12) to (1.14); Ma et al. (2015), eqs. (3) to (5) and section
    4.2; Ding et al. (2014); Lu et al. (2017), separable; Chen et al. (2016).
    """

    imports = {"matrices"}

    dynamics: Literal["langevin", "hamiltonian", "thermostat", "thermostats"]
    metric: Literal["constant", "potential"]
    metric_scale: PositiveFloat
    metric_offset: FiniteFloat
    friction: PositiveFloat
    mass: PositiveFloat
    speed: PositiveFloat | None
    matrices: ImportPath | None
    updates: Literal["in_turn", "together"]

    @model_validator(mode="after")
    def _check_stable_friction(self) -> Recipe:
        turn = self.step_size * self.friction / self.mass
        if self.dynamics != "langevin" and turn > 1:
            raise ValueError(
                f"friction: step_size × friction / mass = {turn:g} reverses the momentum at each "
                f"step; use at most 1"
            )
        return self

    @property
    def _kinetics(self) -> Kinetics:
        return Kinetics(self.mass, self.speed or inf)

    @property
    def _where(self) -> str:
        return f"inference.matrices={self.matrices}"

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> RecipeState:
        self.check_noise_estimate(problem)
        state = self.start_chains(model, problem, rng)
        theta = state.theta
        rest = theta[:, :0]
        if self.dynamics != "langevin":
            rest = normal_like(theta, rng.init)
        if self.dynamics.startswith("thermostat"):
            n = 1 if self.dynamics == "thermostat" else theta.shape[1]
            rest = torch.cat([rest, torch.full_like(theta[:, :n], self.friction)], 1)
        if self.matrices is not None:
            given = import_object("inference.matrices", self.matrices)
            check_matrices(given, torch.cat([theta, rest], 1), self._where)
        return RecipeState(
            **vars(state),
            rest=rest,
            V=torch.zeros_like(theta),
            control=self.init_reference(model, theta, problem),
        )

    def terms(self, theta: Tensor, rest: Tensor, value: Tensor, gradient: Tensor) -> RecipeTerms:
        """Drift and noise at z = (θ [K, P], rest [K, n − P]), log joint [K], gradient [K, P]."""
        if self.matrices is not None:
            given = import_object("inference.matrices", self.matrices)
            slope = energy_gradient(gradient, rest, self.friction, self._kinetics)
            return any_matrices(given, torch.cat([theta, rest], 1), gradient, slope, self._where)
        scale = None if self.metric == "constant" else self.metric_scale
        metric = potential_metric(value, gradient, scale, self.metric_offset)
        if self.dynamics == "langevin":
            return langevin(metric, gradient)
        return hamiltonian(metric, gradient, rest, self.friction, self._kinetics)

    def step(self, state: RecipeState, batch: ModelBatch, rng: Rng) -> tuple[RecipeState, Info]:
        model = state.model
        rest = state.rest
        t = state.t
        P = state.theta.shape[1]
        eps = self.step_size_at(t)
        control = self.refresh_reference(state.control, model, state.theta, t)
        theta = state.theta
        xi = normal_like(theta if self.matrices is None else torch.cat([theta, rest], 1), rng.noise)
        in_turn = self.updates == "in_turn" and rest.shape[1] > 0
        if in_turn and self.matrices is None and self.metric == "constant":
            # √G v, without gradient
            theta = theta + eps * self._kinetics.velocity(rest[:, :P])[0]
        elif in_turn:
            first = self.terms(theta, rest, *self.estimate(control, model, theta, batch))
            theta = theta + (eps * first.drift + first.noise(xi, eps, state.V))[:, :P]
        value, gradient, V = self.estimate_with_noise(control, model, theta, batch, state.V, t)
        terms = self.terms(theta, rest, value, gradient)
        increment = eps * terms.drift + terms.noise(xi, eps, V)  # eq. (1.14)
        theta = theta if in_turn else theta + increment[:, :P]
        rest = rest + increment[:, P:]
        state = self.advance(state, theta, rest=rest, V=V, control=control)
        info = self.describe_step(state, value, gradient, eps)
        if rest.shape[1] > P:
            thermostat = rest[:, P:].mean(1, keepdim=True)
            info["thermostat"] = mean_over_chains(thermostat, state.replicates)
        return state, info
