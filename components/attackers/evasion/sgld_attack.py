"""Langevin sampling of adversarial examples."""

from __future__ import annotations

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.attackers.evasion.ascent import InBall, InputGradientAttack
from components.attackers.evasion.langevin import beta_sizes, langevin, poisson_steps
from components.contracts.roles import ZeroToOne
from components.contracts.streams import Rng
from components.contracts.victim import Victim
from components.registry import register


@register("attacker", "sgld_attack")
class SGLDAttack(InBall, InputGradientAttack):
    """Samples perturbations with large loss by noisy sign steps of random size, number and
    criterion.

    x_{t+1} = x_t − α sign ∇_x J(x_t) + N(0, 2ατ),  t = 1, …, T;  every row draws
    α = step_size · ε · Beta(a, b), T ~ Poisson(steps) and J = log p(y|x) or, with
    probability ``margin``, the logits' margin of Carlini and Wagner.  With ``project`` every x_t is
    projected to ‖x_t − x‖ ≤ ε.  τ = 1 is (3.14) as printed, where α is called ε.  A row may draw
    few or small steps, so the attack can be weaker than one step of size ε; this is not checked.  x
    [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Gallego (2021), eq. (3.14).
    """

    steps: PositiveFloat
    step_size: PositiveFloat
    beta_a: PositiveFloat
    beta_b: PositiveFloat
    temperature: NonNegativeFloat
    margin: ZeroToOne
    project: bool

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        steps, alpha, margin = self.draw(x, rng.attack, eps)
        return langevin(
            victim,
            x,
            y,
            rng.attack,
            step_size=alpha.unsqueeze(1),
            steps=steps,
            temperature=self.temperature,
            radius=eps if self.project else None,
            norm=self.norm,
            margin=margin,
        )

    def draw(
        self, x: Tensor, generator: torch.Generator, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Random quantities of each row of x.

        Returns:
            T [B], α [B] and an indicator of rows that use the margin [B] bool.
        """
        steps = poisson_steps(x, self.steps, generator).to(x.dtype)
        alpha = beta_sizes(x, self.step_size * eps, [self.beta_a, self.beta_b], generator)[:, 0]
        u = torch.rand(len(x), generator=generator, dtype=torch.float64, device=x.device)
        return steps, alpha, u < self.margin
