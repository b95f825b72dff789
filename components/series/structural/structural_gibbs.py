"""Sampling of a structural time series: standard deviations with the states integrated out, states,
and coefficients with variable selection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import StructuralSeries
from components.contracts.costs.counts import count
from components.contracts.roles import Info
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.structural import Structure
from components.contracts.traces import Trace, is_kept_step
from components.errors import NumericalError
from components.inference.chains import stack_kept
from components.maths.exponential.standard_draws import standard_normal, standard_uniform
from components.maths.spacing import evenly_spaced
from components.registry import register
from components.series.sequence import Sequence
from components.series.structural.structural_posterior import (
    StructuralDraws,
    StructuralInference,
    parts_of,
)
from components.series.structural.sweep import ChainStates, Sweep

SPREAD = 1.0  # sd of the initial log standard deviations of chains around their guesses
COEFFICIENT_WIDTH = 0.3  # unit of φ before directions are learned; of log σ 1
FEWEST = 20  # fewest draws per coordinate of (log σ, φ) to learn directions
EARLIER = 256  # draws that serve as centres of independent proposals, at most


@dataclass(kw_only=True)
class StructuralGibbsState:
    """C chains: their positions and stored draws."""

    model: StructuralSeries = not_checkpointed()
    series: Series = not_checkpointed()
    sweeps: Sweep = not_checkpointed()
    begun: Tensor  # initial θ of the chains [C, P]
    place: ChainStates
    visited: Trace = field(default_factory=Trace)  # (log σ, φ) [C, S + Q] in the burn-in
    t: int = 0  # sweeps done
    kept: Trace = field(default_factory=Trace)  # rows of θ [C, P], on the CPU
    # rows of each block's contribution [C, n, B], on the CPU
    kept_parts: Trace = field(default_factory=Trace)
    # rows of λ [C, n] of Student's errors, on the CPU
    kept_precisions: Trace = field(default_factory=Trace)


@register("inference", "structural_gibbs")
class StructuralGibbs(StructuralInference[StructuralGibbsState]):
    """Sampler of a structural time series, C chains in parallel; one sweep per step.

        (log σ, φ) by Metropolis-Hastings moves in p(σ, φ | y, γ, β, λ),  (γ, β) ~ p(γ, β | y, σ, φ, λ),
        α_1:n ~ p(α | y, θ, λ),  σ_j ~ p(σ_j | α),
        γ ~ p(γ | α, φ, λ, y),  (β, σ) ~ p(β, σ | γ, α, φ, λ, y)

    and for Student's t errors ν ~ p(ν | ε), λ_t ~ p(λ_t | ε_t, ν).  The first two draws have the
    states integrated out by the Kalman filter.  With ``scheme`` marginal there are no other draws
    if errors are Gaussian and no column is selected: (log σ, φ) moves in p(σ, φ | y), and β and the
    states [C, n, d] are drawn in stored sweeps only, by a simulation smoother.  Otherwise, and with
    ``scheme`` gibbs, β and σ are integrated out in the draw of γ, λ in the draw of ν; each is drawn
    directly afterwards.  Moves are steps along one of the axes of (log σ, φ), and proposals from a
    kernel density estimate of earlier draws; axes and draws are learned three times in the burn-in,
    over all chains, the last time at its end.  Missing observations are skipped and need no
    imputation.  Chains start at standard deviations e^{N(0, 1)} times their guesses.  After
    ``burn_in`` sweeps every ``thinning``-th sweep is stored, with C (P + n B) numbers.

    Raises:
        NumericalError: a conditional draws a value that is not finite.

    Source: Gallego (2021), section 1.2.2; Scott and Varian (2014), section 3; Durbin and
    Koopman (2002); Durbin and Koopman (2012), section 13.4; Tierney (1994); Liu (1994).
    """

    chains: PositiveInt
    burn_in: NonNegativeInt
    thinning: PositiveInt
    scheme: Literal["marginal", "gibbs"]

    def init(self, model: StructuralSeries, problem: Sequence, rng: Rng) -> StructuralGibbsState:
        sweeps = Sweep(model.structure, model.design(problem.series), self.scheme == "marginal")
        place = init_gibbs_state(model.structure, sweeps, self.chains, rng.init)
        return StructuralGibbsState(
            model=model,
            series=problem.series,
            sweeps=sweeps,
            begun=pack_theta(model.structure, place),
            place=place,
        )

    @torch.no_grad()
    def step(
        self, state: StructuralGibbsState, batch: Series, rng: Rng
    ) -> tuple[StructuralGibbsState, Info]:
        structure = state.model.structure
        t = state.t + 1
        is_kept = is_kept_step(t, self.burn_in, self.thinning)
        place, alpha = state.sweeps.sweep(state.place, rng.noise, is_kept)
        theta = pack_theta(structure, place)
        count(forwards=len(theta) * batch.y.shape[1])
        if not torch.isfinite(theta.sum()):
            raise NumericalError(
                "a conditional drew a value that is not finite", "change the priors of model.blocks"
            )
        if is_kept:
            state.kept.append(theta.cpu())
            state.kept_parts.append(parts_of(state.model, theta, alpha, state.sweeps.design).cpu())
            if structure.errors.student:
                state.kept_precisions.append(place.precisions.cpu())
        if t <= self.burn_in:
            state.visited.append(torch.cat([place.sigma.log(), place.phi], 1).cpu())
            if t in (self.burn_in // 4, self.burn_in // 2, self.burn_in):
                place = learn_directions(place, state.visited.rows[t // 2 :])
        by_name = dict(zip(structure.names, theta.mean(0).unbind(), strict=True))
        return replace(state, place=place, t=t), by_name | {"draws": len(state.kept)}

    def posterior(self, state: StructuralGibbsState) -> StructuralDraws:
        theta = pack_theta(state.model.structure, state.place)
        structure = state.model.structure
        one_state = theta.new_empty(len(theta), state.sweeps.n, len(structure.labels))
        lam = None
        if len(state.kept) and structure.errors.student:
            lam = state.kept_precisions.stack_rows(1).to(theta.device)
        return StructuralDraws(
            draws=stack_kept(state.kept, theta),
            start=state.begun,
            names=list(structure.names),
            current=theta,
            of=state.model,
            series=state.series,
            contributions=stack_kept(state.kept_parts, one_state),
            precisions=lam,
        )


def init_gibbs_state(
    structure: Structure, sweeps: Sweep, chains: int, generator: torch.Generator
) -> ChainStates:
    """Initial state of C chains."""
    like = structure.inclusion
    guess, upper = (
        like.new_tensor([vars(scale)[key] for scale in structure.scales])
        for key in ("guess", "upper")
    )
    z = standard_normal((chains, len(guess)), generator, like)
    phi = like.new_tensor([x for moves in structure.transitions for x in moves.start])
    errors = structure.errors
    nu = (
        torch.inf
        if not errors.student
        else (2 + errors.shape / errors.rate if errors.nu is None else errors.nu)
    )
    gamma = standard_uniform((chains, len(like)), generator, like) < like
    times = sweeps.n if errors.student else 0
    widths = [1.0] * len(guess) + [COEFFICIENT_WIDTH] * len(phi)
    return ChainStates(
        sigma=torch.minimum(guess * (SPREAD * z).exp(), upper),
        phi=phi.expand(chains, -1),
        gamma=gamma,
        beta=torch.zeros_like(gamma, dtype=like.dtype),
        nu=like.new_full((chains,), nu),
        precisions=like.new_ones(chains, times),
        directions=torch.diag(like.new_tensor(widths)).expand(chains, -1, -1),
        earlier=like.new_empty(chains, 0, len(widths)),
    )


def learn_directions(place: ChainStates, visited: Tensor) -> ChainStates:
    """Chains with the principal axes and evenly spaced rows of earlier (log σ, φ) [N, C, S + Q], if
    there are enough."""
    z = visited.flatten(0, 1).to(place.directions)
    if len(z) < FEWEST * z.shape[1]:
        return place
    centred = z - z.mean(0)
    variances, axes = torch.linalg.eigh(centred.mT @ centred / len(z))
    sd = variances.clamp_min(1e-8).sqrt()
    chains = len(place.sigma)
    return replace(
        place,
        directions=(axes * sd).mT.expand(chains, -1, -1),
        earlier=(evenly_spaced(z, EARLIER) @ axes / sd).expand(chains, -1, -1),
    )


def pack_theta(structure: Structure, place: ChainStates) -> Tensor:
    """θ [C, P] in the order of its names."""
    theta = [place.sigma, place.phi, place.beta]
    return torch.cat(
        [*theta, place.nu.unsqueeze(1)] if structure.errors.is_nu_sampled else theta, 1
    )
