"""An adversary that shifts a filter's observations, within a budget, to mislead it."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.attackers import Injection
from components.contracts.requirements import Requirements
from components.contracts.roles import AboveZeroToOne, ZeroToOne
from components.contracts.streams import Rng
from components.contracts.victim import FilterVictim, Knowledge
from components.maths.exponential.standard_draws import standard_uniform
from components.registry import register
from components.series.attackers.shifts import climb, random_signs, search


def _scale_to_norm(u: Tensor, eps: float) -> Tensor:
    """Rescale shifts so that the longest of each replicate has length ε.

    A replicate without shifts is unchanged.
    """
    longest = u.norm(dim=-1).amax(1).view(-1, 1, 1)
    return u * torch.where(longest > 0, eps / longest.clamp_min(1e-12), 1.0)


@register("attacker", "spoofing")
class Spoofing(Injection):
    """Shifts observations within a budget to maximise the filter's error.

    max_δ E(y + δ), E = Σ_j w_j T⁻¹ Σ_t (x_tj − x̂_tj(y + δ))², ‖Σ^{−½} δ_t‖ ≤ ε at a share
    of the times and δ_t = 0 at the others; w_j = 1/dx (rmse, √E) or
    1/(dx T⁻¹ Σ_t x_tj²) (nmse).  The attacker is omniscient, the worst case: it has the true states
    x, the whole series y and the filter, but not the filter's random numbers, for which it draws
    its own.  With access to the gradient it uses gradient ascent through the filter's own steps,
    random numbers held fixed; gradients pass resampling through the weights (stop-gradient
    estimator).  With queries it observes only the error; without access its signs are random.  At a
    larger budget it starts from the shifts found at a smaller one.  Observations and shifts are [R,
    T, dy]; missing ones stay missing.

    Raises:
        ConfigMismatchError: the unit of the noise is unknown, or ``access=gradient`` and the filter
            is not differentiable.

    Source: Mo and Sinopoli (2010); Madry et al. (2018), eq. (1); Ścibior and Wood (2021),
    section 3.
    """

    requires = Requirements(refused_traits={"unknown_states": "requires the true states"})

    error: Literal["rmse", "nmse"]
    access: Literal["gradient", "queries", "nothing"]
    probability: ZeroToOne
    times: Literal["random", "worst"]
    steps: PositiveInt
    step_size: AboveZeroToOne
    restarts: NonNegativeInt
    queries: PositiveInt
    window: PositiveInt
    unit: PositiveFloat | None

    @model_validator(mode="after")
    def _check_worst_access(self) -> Spoofing:
        if self.times == "worst" and self.access != "gradient":
            raise ValueError(
                "times=worst: the worst times are chosen by the gradient; set access=gradient or times=random"
            )
        return self

    def error_measure(self) -> Literal["rmse", "nmse"]:
        return self.error

    def backpropagated_steps(self) -> int:
        return self.window

    def noise_unit(self) -> float | None:
        return self.unit

    def knowledge_used(self) -> Knowledge:
        return "white box" if self.access == "gradient" else "black box"

    def references(self) -> dict[str, Injection]:
        """The same attacker at the same times with a single step, with queries, and with random
        signs."""
        single_step = self.model_copy(
            update={"access": "gradient", "steps": 1, "step_size": 1.0, "restarts": 0}
        )
        black, signs = (
            self.model_copy(update={"access": access}) for access in ("queries", "nothing")
        )
        return {"one step": single_step, "black box": black, "random signs": signs}

    def struck(self, victim: FilterVictim, rng: Rng) -> Tensor:
        """The times that the attacker shifts [R, T] bool, independent of the budget.

        They are drawn at random, or are the times of the steepest gradient.
        """
        is_observed = victim.is_observed
        if self.times == "random":
            u = torch.rand(
                is_observed.shape,
                generator=rng.at("attack", 0),
                device=is_observed.device,
                dtype=torch.float64,
            )
            return (u < self.probability) & is_observed
        slope = victim.gradient(torch.zeros_like(victim.observations))[1].norm(dim=-1)  # [R, T]
        rank = torch.where(is_observed, slope, -1).argsort(dim=1, descending=True).argsort(dim=1)
        return (rank < (self.probability * is_observed.sum(1, keepdim=True)).round()) & is_observed

    def shift(self, victim: FilterVictim, rng: Rng, eps: float, found: Tensor | None) -> Tensor:
        nothing = torch.zeros_like(victim.observations)
        if eps == 0:
            return nothing
        struck = self.struck(victim, rng)
        dy = nothing.shape[-1]
        generator = rng.at("attack", 1)
        signs = random_signs(struck, dy, eps, generator, nothing)
        if self.access == "nothing":
            return signs
        candidates = [] if found is None else [found]
        if self.access == "queries":
            return search(victim, struck, eps, self.queries, signs, candidates, generator)
        starts = [nothing] if found is None else [_scale_to_norm(found, eps)]
        for _ in range(self.restarts):
            corner = random_signs(struck, dy, eps, generator, nothing)
            share = standard_uniform((len(corner), 1, 1), generator, corner)
            starts.append(share * corner)
        return climb(victim, struck, eps, self.steps, self.step_size, starts, candidates)
