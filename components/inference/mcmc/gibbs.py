"""Gibbs sampling over blocks that the model declares."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from pydantic import NonNegativeInt, PositiveInt

from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.chains import Chains, collected, moved, started
from components.inference.log_joint import log_joint
from components.posteriors.draws import Draws
from components.registry import register


@register("inference", "gibbs")
class Gibbs(Inference):
    """Gibbs sampling with the full conditionals of a model's blocks, C chains at once.

        θ_b ~ p(θ_b | θ_−b, y)   for b = 1, …, B (systematic), or for B blocks each chain picks uniformly (random)

    θ [C, P], B draws a step.  Every draw is exact, so nothing is rejected or tuned; a random scan is reversible, a
    systematic one is not.  After ``burn_in`` steps every ``thinning``-th state is kept.

    Raises NumericalTrouble where a conditional draws what is not finite.  Raises Misfit for minibatches.

    Source: Geman and Geman (1984); Robert and Casella (2004), section 10.1; Bardenet (2021), section 4.3."""

    kinds: ClassVar[frozenset[str]] = frozenset({"density", "supervised"})
    sees: ClassVar[Sees] = "whole"
    needs: ClassVar[frozenset[str]] = frozenset({"log_joint", "conditionals"})
    chains: PositiveInt
    scan: Literal["systematic", "random"]
    burn_in: NonNegativeInt
    thinning: PositiveInt

    def init(self, model: Any, problem: Any, rng: Rng) -> Chains:
        return started(model, problem, self.chains, rng, gradient=False)

    @torch.no_grad()
    def step(self, state: Chains, batch: Any, rng: Rng) -> tuple[Chains, Info]:
        model, theta = state["model"], state["theta"]
        B = len(model.blocks)
        if self.scan == "systematic":
            for block in model.blocks:
                theta = model.draw_block(block, theta, batch, rng.noise)
        else:
            for picks in torch.randint(B, (B, len(theta)), generator=rng.noise, device=theta.device):
                drawn = theta
                for b in picks.unique().tolist():  # each chain takes its own block's draw and leaves the others'
                    new = model.draw_block(model.blocks[b], theta, batch, rng.noise)
                    drawn = torch.where((picks == b)[:, None], new, drawn)
                theta = drawn
        lp = log_joint(model, theta, batch)
        state = moved(state, theta, self.burn_in, self.thinning, {"lp": lp}, "mend the conditionals of the model")
        return state, {"log_joint": lp.mean(), "draws": len(state["kept"])}

    def posterior(self, state: Chains) -> Draws:
        return collected(state)  # [C, N, P]
