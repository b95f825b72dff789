"""Langevin sampling of adversarial examples."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.attackers.evasion.norms import NORMS, NormName
from components.attackers.evasion.sizes import Sizes
from components.attackers.victim import Expectation, Victim
from components.interfaces import Attacker, Probability, Rng
from components.registry import register


@register("attacker", "sgld_attack")
class SGLDAttack(Attacker):
    """Samples perturbations from regions of large loss by noisy sign steps of uncertain size, number and kind.

    x_{t+1} = x_t − α sign ∇_x J(x_t) + N(0, 2ατ),  t = 1, …, T;  every row draws α = step_size · ε · Beta(a, b),
    T ~ Poisson(steps) and J = log p(y|x) or, with probability ``margin``, the logits' margin of Carlini and Wagner.  With
    ``project`` every x_t is held inside ‖x_t − x‖ ≤ ε.  τ = 1 is (3.14) as printed, whose α is called ε there.
    x [B, D], y [B, T].

    Raises:
        Misfit: the victim has no gradient in its input.

    Source: Gallego (2021), eq. (3.14)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary", "classes"})
    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: Sizes
    norm: NormName
    steps: PositiveFloat
    step_size: PositiveFloat
    beta_a: PositiveFloat
    beta_b: PositiveFloat
    temperature: NonNegativeFloat
    margin: Probability
    project: bool
    expectation: Expectation

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        generator, at = rng.attack, x.clone()
        number, alpha, margin = self.draw(x, generator, eps)
        for step in range(int(number.max()) if len(x) else 0):
            # Noise for all rows: what a row is given does not depend on how long the others go on.
            z = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
            rows = (number > step).nonzero()[:, 0]
            answer = victim.answer(at[rows], y[rows], generator, margin[rows])
            a = alpha[rows].unsqueeze(1)
            moved = at[rows] - a * answer.gradient.sign() + (2 * a * self.temperature).sqrt() * z[rows]
            if self.project:
                moved = x[rows] + NORMS[self.norm].project(moved - x[rows], eps)
            at[rows] = victim.clip(moved)
        return at

    def draw(self, x: Tensor, generator: torch.Generator, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        """What each row of x is uncertain about: T [B], α [B] and whether it follows the margin [B] bool."""
        one = torch.ones(len(x), dtype=x.dtype, device=x.device)
        number = torch.poisson(self.steps * one, generator=generator)
        first = torch._standard_gamma(self.beta_a * one, generator=generator)
        second = torch._standard_gamma(self.beta_b * one, generator=generator)
        alpha = self.step_size * eps * first / (first + second)
        u = torch.rand(len(x), generator=generator, dtype=x.dtype, device=x.device)
        return number, alpha, u < self.margin
