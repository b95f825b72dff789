"""Sweeps of a Gibbs sampler over all unknown quantities of a structural series, for C chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from components.contracts.structural import Design, Structure
from components.maths.compiled.loops import Array, to_array
from components.series.structural.compiled import sweep as compiled
from components.series.structural.compiled.heavy_tails import Tails
from components.series.structural.compiled.marginal_moves import (
    MOVES,
    MoveNumbers,
    ScalePriors,
    SweepRows,
)
from components.series.structural.compiled.simulation_smoother import (
    StateRandomNumbers,
    System,
    build_system,
    kept_values,
)
from components.series.structural.compiled.spike_slab import Slab, SlabRandomNumbers
from components.series.structural.compiled.sweep import (
    SweepChain,
    SweepModel,
    SweepRandomNumbers,
    SweepSeries,
)


@dataclass(frozen=True)
class ChainStates:
    """States of C chains, in the order of ``SweepChain``."""

    sigma: Tensor  # [C, S]
    phi: Tensor  # [C, Q]
    gamma: Tensor  # included columns [C, p] bool
    beta: Tensor  # [C, p], 0 for excluded columns
    nu: Tensor  # [C]; ∞: errors are Gaussian
    precisions: Tensor  # λ [C, n]; [C, 0]: all are 1
    directions: Tensor  # V of (log σ, φ), orthogonal rows [C, S + Q, S + Q]
    earlier: Tensor  # u of earlier draws [C, M, S + Q]


class Sweep:
    """Sweeps over one series, compiled; tensors on another device are copied to the CPU and back.

        σ_j, φ_q | y, γ, β, λ (states integrated out),   γ, β | y, σ, φ, λ (states integrated out),
        α ~ p(α | y, σ, φ, β, λ),   σ_j | α,   γ | α, φ, λ (β, σ_0 summed out),   σ_0 | γ,
        β | γ, σ_0,   ν (λ summed out),   λ | ν

    Marginal sweeps end after the third draw: (σ, φ) are drawn without β, and β and the states on
    request.  They need Gaussian errors, and columns that are always in or out.

    Source: Gallego (2021), section 1.2.2, steps 1 to 3; Scott and Varian (2014), section 3.2;
    Liu (1994); Durbin and Koopman (2012), section 13.4."""

    def __init__(self, structure: Structure, design: Design, is_marginal: bool = True):
        self.structure = structure
        self.design = design
        self.n, self.d = design.F.shape
        slab = _slab(structure, design)
        scales = _scales(structure, design)
        selects = bool(np.isfinite(slab.logit).any())
        self.model = SweepModel(
            series=_series(structure, design, system := compile_system(structure, design)),
            system=system,
            slab=slab,
            scales=scales,
            rows=_rows(structure),
            tails=_tails(structure),
            is_marginal=is_marginal
            and not (selects or structure.errors.student)
            and len(scales.owner) > 0,
        )

    @cached_property
    def work(self) -> compiled.SweepWork:
        return compiled.sweep_work(self.model)

    def numbers(
        self,
        sweeps: int,
        chains: int,
        generator: torch.Generator,
        twice: bool = True,
        states: bool = True,
    ) -> SweepRandomNumbers:
        """Random numbers of K sweeps of C chains.

        Args:
            twice: the parameters are also drawn with the states integrated out.
            states: the states and columns are drawn, which only marginal sweeps can omit.
        """
        lead = (sweeps, chains)
        p = len(self.model.slab.logit)
        n = self.n * states
        k = len(self.model.system.noisy)
        drawing = np.random.Generator(np.random.SFC64(int(_seeds((), generator))))
        width = p * (twice and self.d > 0)
        shape = self.model.scales.shape
        D = len(shape) + len(self.model.series.changes)
        moves = (*lead, MOVES * (twice and k > 0))
        chi2 = drawing.chisquare(D + 2, (*moves, 1)) / (D + 2)
        return SweepRandomNumbers(
            SlabRandomNumbers(
                drawing.random((*lead, width + (width > 0))),
                drawing.standard_normal((*lead, width)),
            ),
            StateRandomNumbers(
                drawing.standard_normal((*lead, self.d)),
                drawing.standard_normal((*lead, max(n - 1, 0), k)),
                drawing.standard_normal((*lead, n)),
            ),
            SlabRandomNumbers(drawing.random((*lead, p + 1)), drawing.standard_normal((*lead, p))),
            drawing.standard_gamma(np.append(shape, shape[0]), (*lead, len(shape) + 1)),
            MoveNumbers(
                drawing.random((*moves, 2)), drawing.standard_normal((*moves, D)) / np.sqrt(chi2)
            ),
            _seeds((*lead, 2 * self.structure.errors.student), generator),
        )

    def advance(
        self, place: ChainStates, numbers: SweepRandomNumbers
    ) -> tuple[ChainStates, Tensor, Tensor]:
        """Run K sweeps; return the chains, α of the last sweep [C, n, d], and (σ, β) of all [K, C,
        S + p]."""
        states = np.empty((len(place.sigma), self.n, self.d))
        chains = SweepChain._make([*(to_array(x).copy() for x in vars(place).values()), states])
        kept = np.empty((*numbers.g.shape[:2], place.sigma.shape[1] + place.beta.shape[1]))
        compiled.run_sweeps(self.model, numbers, chains, kept, self.work)
        *new, alpha = (torch.from_numpy(x).to(place.sigma.device) for x in chains)
        return ChainStates(*new), alpha, torch.from_numpy(kept).to(alpha)

    def sweep(
        self, place: ChainStates, generator: torch.Generator, states: bool = True
    ) -> tuple[ChainStates, Tensor]:
        """Run one sweep; return the chains, and α [C, n, d] if requested."""
        numbers = self.numbers(
            1, len(place.sigma), generator, states=states or not self.model.is_marginal
        )
        new, alpha, _ = self.advance(place, numbers)
        return new, alpha


def _seeds(shape: tuple[int, ...], generator: torch.Generator) -> Array:
    drawn = torch.empty(shape, dtype=torch.int64, device=generator.device).random_(
        generator=generator
    )
    return drawn.cpu().numpy().view(np.uint64)


def compile_system(structure: Structure, design: Design) -> System:
    """The constant parts of a structure's system."""
    pattern = structure.G != 0
    for moves in structure.transitions:
        pattern[moves.row] |= (moves.terms != 0).any(0)
    noisy = tuple(i for scale in structure.scales[1:] for i in scale.states)
    return build_system(design.seen, design.F, structure.mean, structure.sd, pattern, noisy)


def _series(structure: Structure, design: Design, system: System) -> SweepSeries:
    changes = [
        torch.zeros_like(structure.G) for moves in structure.transitions for _ in moves.names
    ]
    terms = [(moves.row, row) for moves in structure.transitions for row in moves.terms]
    for change, (i, row) in zip(changes, terms, strict=True):
        change[i] = row
    by_phi = kept_values(system, torch.stack([structure.G, *changes]))
    seen = design.X[design.seen]
    fades = to_array(structure.fades).astype(np.int64)
    return SweepSeries(
        y=to_array(design.y),
        flow=to_array(design.X.T),
        fades=fades,
        limits=to_array(structure.limits),
        has_stocks=bool((fades >= 0).any()),
        gram=to_array(seen.T @ seen),
        values=by_phi[0],
        changes=by_phi[1:],
    )


def _slab(structure: Structure, design: Design) -> Slab:
    noise = structure.scales[0]
    pi = structure.inclusion
    logit = pi.log() - (-pi).log1p()
    shape = 0.5 * (noise.df + int(design.seen.sum()))
    squares = noise.df * noise.guess**2
    return Slab(to_array(structure.precision), to_array(logit), squares, shape, noise.upper)


def _scales(structure: Structure, design: Design) -> ScalePriors:
    scales = structure.scales
    times = len(design.y) - 1
    counts = [int(design.seen.sum()), *(times * len(scale.states) for scale in scales[1:])]
    return ScalePriors(
        df=np.array([scale.df for scale in scales]),
        squares=np.array([scale.df * scale.guess**2 for scale in scales]),
        upper=np.array([scale.upper for scale in scales]),
        shape=np.array([0.5 * (s.df + m) for s, m in zip(scales, counts, strict=True)]),
        owner=np.array([j for j, s in enumerate(scales) if j for _ in s.states], dtype=np.int64),
    )


def _rows(structure: Structure) -> SweepRows:
    moves = structure.transitions
    return SweepRows(
        first=np.cumsum([0, *(x.count for x in moves)]),
        prior=np.array([(x.precision, x.mean) for x in moves]).reshape(-1, 2),
        is_bounded=np.array([x.within is not None for x in moves], dtype=np.bool_),
        bounds=np.array([x.interval for x in moves]).reshape(-1, 2),
    )


def _tails(structure: Structure) -> Tails:
    errors = structure.errors
    return Tails(errors.student, errors.is_nu_sampled, float(errors.shape), float(errors.rate))
