"""Gibbs sampling over blocks that the model declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt

from components.contracts.capabilities import Conditionals, LogJoint
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, SampleableProblem, Sampler, advance
from components.inference.log_joint import log_joint
from components.inference.superchains import Superchains
from components.registry import register


@dataclass(kw_only=True)
class GibbsState(Chains):
    model: Conditionals = not_checkpointed()


@register("inference", "gibbs")
class Gibbs(Superchains, Sampler[GibbsState]):
    """Gibbs sampling with the full conditionals of a model's blocks, C chains in parallel.

        θ_b ~ p(θ_b | θ_−b, y)   for b = 1, …, B (systematic)

    or for B blocks that each chain picks uniformly (random).  θ [C, P], B draws per step.
    Every draw is exact, so nothing is rejected or tuned; a random scan is reversible, a
    systematic one is not.  After ``burn_in`` steps every ``thinning``-th state is kept.

    Raises NumericalError if a conditional draws a non-finite value.

    Source: Geman and Geman (1984); Robert and Casella (2004), section 10.1; Bardenet
    (2021), section 4.3.
    """

    requires = Requirements(
        kinds={"density", "supervised", "unlabelled"},
        batch_kind="whole",
        capabilities={Conditionals},
    )
    scan: Literal["systematic", "random"]
    burn_in: NonNegativeInt
    thinning: PositiveInt

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> GibbsState:
        return GibbsState(**vars(self.start_chains(model, problem, rng, gradient=False)))

    @torch.no_grad()
    def step(self, state: GibbsState, batch: ModelBatch, rng: Rng) -> tuple[GibbsState, Info]:
        assert not isinstance(batch, Series)  # series do not have conditionals of this kind
        model = state.model
        theta = state.theta
        B = len(model.blocks)
        if self.scan == "systematic":
            for block in model.blocks:
                theta = model.draw_block(block, theta, batch, rng.noise)
        else:
            for picks in torch.randint(
                B, (B, len(theta)), generator=rng.noise, device=theta.device
            ):
                theta_next = theta
                # each chain takes the draw of its own block and keeps the other blocks
                for b in picks.unique().tolist():
                    new = model.draw_block(model.blocks[b], theta, batch, rng.noise)
                    theta_next = torch.where((picks == b)[:, None], new, theta_next)
                theta = theta_next
        lp = log_joint(model, theta, batch)
        state = advance(
            state,
            theta,
            self.burn_in,
            self.thinning,
            {"lp": lp},
            "fix the conditionals of the model",
        )
        return state, {"log_joint": lp.mean(), "draws": len(state.kept)}
