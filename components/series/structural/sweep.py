"""Gibbs sweep over all unknowns of a structural series, C chains in parallel."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.contracts.structural import Design, Structure
from components.maths.compiled import loops
from components.series.conditionals import spike_slab
from components.series.conditionals.exact_root import root
from components.series.conditionals.slice_sampling import seeds_of
from components.series.conditionals.spike_slab import SlabRandomNumbers, SpikeSlab
from components.series.conditionals.truncated_gamma import deviations
from components.series.fast import simulation_smoother as compiled_states
from components.series.fast import spike_slab as compiled_slab
from components.series.fast import structural_sweep
from components.series.maths import simulation_smoother as tensor_states
from components.series.maths.simulation_smoother import (
    Sparse,
    StateLayout,
    StateRandomNumbers,
    in_order,
)
from components.series.maths.stocks import stocks
from components.series.structural.columns_first import ColumnsFirst
from components.series.structural.dynamics import draw_dynamics
from components.series.structural.fading import FadingRegression
from components.series.structural.heavy_tails import draw_degrees_of_freedom, draw_precisions
from components.series.structural.interweaving import Interweaving
from components.series.structural.place import Place, SweepRandomNumbers, predraw_numbers


class Sweep:
    """Data that sweeps read from a structure and a series, prepared once.

        α ~ p(α | y, σ, φ, β, λ),   σ_j | α
        φ | α (β summed out where columns fade with it)
        γ | α, φ, λ (β, σ_0 summed out),   σ_0 | γ,   β | γ, σ_0
        ν (λ summed out),   λ | ν

    With at most one coefficient of its own dynamics and with Gaussian errors a sweep is one
    compiled loop if numba is installed; otherwise only its state draws and its regression
    are compiled.  The numbers are the same, bit by bit.

    Source: Gallego (2021), section 1.2.2, steps 1 to 3; Scott and Varian (2014), section
    3.2.
    """

    def __init__(self, structure: Structure, design: Design):
        self.structure = structure
        self.design = design
        self.n, self.d = design.F.shape
        scales = structure.scales
        owned = [(i, j) for j, scale in enumerate(scales) if j for i in scale.states]
        noisy = tuple(i for i, _ in owned)
        owner = [j for _, j in owned]
        pattern = structure.G != 0
        for moves in structure.transitions:
            pattern[moves.row] |= (moves.terms != 0).any(0)
        self.layout = StateLayout(
            design.seen, design.F, structure.mean, structure.sd, Sparse.of(pattern), noisy
        )
        like = design.y
        self.owner = torch.tensor(owner, dtype=torch.long, device=like.device)  # [k]
        self.count = int(design.seen.sum())
        rows = [self.count] + [(self.n - 1) * len(scale.states) for scale in scales[1:]]
        self.shape = like.new_tensor([0.5 * (s.df + m) for s, m in zip(scales, rows, strict=True)])
        self.squares = like.new_tensor([s.df * s.guess**2 for s in scales])
        self.upper = like.new_tensor([s.upper for s in scales])
        noise = scales[0]
        self.interweaving = Interweaving(self.layout, scales)
        self.slab = SpikeSlab(
            structure.inclusion,
            structure.precision,
            noise.df,
            noise.df * noise.guess**2,
            noise.upper,
        )
        self.columns_first = ColumnsFirst(self.slab, self.layout)
        X_observed = design.X[design.seen]
        self.A = X_observed.T @ X_observed
        self.used = (design.F != 0).any(0).nonzero().flatten()
        self.fades = bool((structure.fades >= 0).any())
        self.plain = not (structure.transitions or structure.errors.student)
        few = sum(moves.count for moves in structure.transitions) <= 1
        self.single = few and self.d > 0 and not structure.errors.student

    # ---- random numbers --------------------------------------------------------------------------------------------
    def numbers(self, sweeps: int, chains: int, generator: torch.Generator) -> SweepRandomNumbers:
        """Random numbers for K sweeps of C chains."""
        n = self.n
        d = self.d
        k = len(self.owner)
        p = len(self.slab.inclusion)
        S = len(self.shape)
        normals, uniforms = predraw_numbers(
            (sweeps, chains), ((d,), (n - 1, k), (n,), (p,)), p + 1, generator
        )
        shape = (
            torch.cat([self.shape, self.shape[:1]])
            .to(generator.device)
            .expand(sweeps, chains, S + 1)
        )
        g = torch._standard_gamma(shape.contiguous(), generator=generator)
        device = self.shape.device
        first, states, observations, columns = (x.to(device) for x in normals)
        return SweepRandomNumbers(
            first, states, observations, columns, uniforms.to(device), g.to(device)
        )

    # ---- one sweep, or several -------------------------------------------------------------------------------------
    def together(self, place: Place, drawn: SweepRandomNumbers) -> tuple[Place, Tensor, Tensor]:
        """K sweeps by one compiled loop: where chains are then, α of the last [C, n, d], and (σ, β)
        of all [K, C, S + p]."""
        C = len(place.sigma)
        design = self.design
        structure = self.structure
        sigma = place.sigma.clone()
        gamma = place.gamma.clone()
        beta = place.beta.clone()
        alpha = design.y.new_empty(C, self.n, self.d)
        samples = design.y.new_empty(len(drawn.g), C, sigma.shape[1] + beta.shape[1])
        rows = self.layout.rows
        to_index_array = compiled_states.whole
        values = rows.numbers(structure.G.unsqueeze(0))[0]
        data = (design.y, design.seen, design.F, self.used, structure.mean, structure.sd)
        priors = (
            design.X,
            design.X.T,
            self.A,
            structure.precision,
            self.slab.logit,
            self.squares,
            self.shape,
            self.upper,
        )
        moving = (drawn.first, drawn.states, drawn.observations, drawn.u, drawn.g, drawn.columns)
        structural_sweep.sweeps()(
            *(x.contiguous().numpy() for x in data),
            to_index_array(rows.start),
            to_index_array(rows.columns),
            values.contiguous().numpy(),
            to_index_array(self.layout.noisy),
            self.owner.numpy(),
            *(x.contiguous().numpy() for x in (*priors, *moving)),
            sigma.numpy(),
            gamma.numpy(),
            beta.numpy(),
            alpha.numpy(),
            samples.numpy(),
        )
        return replace(place, sigma=sigma, gamma=gamma, beta=beta), alpha, samples

    def sweep_in_parts(
        self, place: Place, X: Tensor, drawn: SweepRandomNumbers, generator: torch.Generator
    ) -> tuple[Place, Tensor, Tensor]:
        """One sweep, of the first of the numbers, with columns X [C, n, p] of the φ that there is:
        where the chains are then, α [C, n, d], and columns of the φ then."""
        quick = loops.serve(place.sigma)
        alpha, eta = self._states(place, X, drawn, quick)
        sigma = place.sigma.clone()
        for j in range(1, sigma.shape[1]):
            shocks = eta[..., self.owner == j].flatten(1)
            half = 0.5 * (self.squares[j] + in_order(shocks * shocks))
            sigma[:, j] = deviations(
                drawn.g[0, :, j], float(self.shape[j]), half, float(self.upper[j])
            )
        place = replace(place, sigma=sigma)
        signal = in_order(self.design.F[:, self.used] * alpha[..., self.used])
        residuals = torch.where(self.design.seen, self.design.y - signal, 0.0)  # [C, n]
        if self.structure.transitions:
            place = replace(place, phi=self._dynamics(place, alpha, residuals, generator))
            X = self.columns(place.phi) if self.fades else X
        gamma, noise, beta = self._regression(place, X, residuals, drawn, quick)
        sigma = torch.cat([noise.unsqueeze(1), sigma[:, 1:]], 1)
        place = replace(place, sigma=sigma, gamma=gamma, beta=beta)
        return (
            (
                self._tails(place, X, residuals, generator)
                if self.structure.errors.student
                else place
            ),
            alpha,
            X,
        )

    def centred_sweep(
        self, place: Place, X: Tensor, generator: torch.Generator
    ) -> tuple[Place, Tensor, Tensor]:
        """One sweep as ``sweep_in_parts`` does it, the fastest way that there is here."""
        numbers = self.numbers(1, len(place.sigma), generator)
        if self.plain and loops.serve(place.sigma):
            place, alpha, _ = self.together(place, numbers)
            return place, alpha, X
        return self.sweep_in_parts(place, X, numbers, generator)

    def columns(self, phi: Tensor) -> Tensor:
        """X, stocks grown with the φ of their own [C, n, p]."""
        return stocks(self.design.X, self.structure.fades, phi)

    def sweep(self, place: Place, generator: torch.Generator) -> tuple[Place, Tensor]:
        """One sweep, before it the columns once with the states summed out, and after it standard
        deviations of states once more given their noise in units of them; all of it one compiled
        loop where that is possible."""
        if self.single and loops.serve(place.sigma):
            return self._whole(place, generator)
        X = self.columns(place.phi)
        if len(self.slab.inclusion) and self.d:
            arguments = (
                self.structure.transition(place.phi),
                place.sigma[:, self.owner],
                self._noise(place),
            )
            numbers = self.columns_first.numbers(len(place.sigma), generator)
            gamma, beta = self.columns_first.draw(
                self.design.y, X, *arguments, place.sigma[:, 0], place.gamma, numbers
            )
            place = replace(place, gamma=gamma, beta=beta)
        place, alpha, X = self.centred_sweep(place, X, generator)
        if not len(self.owner):
            return place, alpha
        residuals = torch.where(
            self.design.seen, self.design.y - in_order(X * place.beta.unsqueeze(1)), 0.0
        )
        weights = self._weights(place) / place.sigma[:, :1].square()
        arguments = (self.structure.transition(place.phi), residuals, weights)
        moved = self.interweaving.numbers(len(place.sigma), generator)
        sigma, alpha = self.interweaving.draw(*arguments, place.sigma, alpha, *moved)
        return replace(place, sigma=sigma), alpha

    def _whole(self, place: Place, generator: torch.Generator) -> tuple[Place, Tensor]:
        """``sweep`` by one compiled loop, of the same numbers."""
        C = len(place.sigma)
        design = self.design
        moves = bool(self.structure.transitions)
        before = self.columns_first.numbers(C, generator) if len(self.slab.inclusion) else None
        numbers = self.numbers(1, C, generator)
        seeds = seeds_of(C, generator) if moves else np.zeros(C, np.uint64)
        after = (
            self.interweaving.numbers(C, generator)
            if len(self.owner)
            else (place.sigma, place.sigma)
        )
        sigma = place.sigma.clone()
        gamma = place.gamma.clone()
        beta = place.beta.clone()
        phi = place.phi[:, 0].clone() if moves else place.nu.new_zeros(C)
        alpha = design.y.new_empty(C, self.n, self.d)
        empty = sigma[:, :0]
        first = (
            (empty, empty)
            if before is None
            else (torch.cat([before.u, before.turn.unsqueeze(1)], 1), before.z)
        )
        rest = (
            numbers.first,
            numbers.states,
            numbers.observations,
            numbers.u,
            numbers.g,
            numbers.columns,
        )
        moving = (*first, *(x[0] for x in rest))
        structural_sweep.whole()(
            *self._sweep_constants,
            *(x.contiguous().numpy() for x in moving),
            seeds,
            *(x.contiguous().numpy() for x in after),
            *(x.numpy() for x in (sigma, phi, gamma, beta, alpha)),
        )
        phi = phi.unsqueeze(1) if moves else place.phi
        return replace(place, sigma=sigma, phi=phi, gamma=gamma, beta=beta), alpha

    @cached_property
    def _sweep_constants(self) -> tuple[NDArray[Any], ...]:
        """Constant arguments of all sweeps, in the order of ``structural_sweep.whole``."""
        structure = self.structure
        rows = self.layout.rows
        design = self.design
        slab = self.slab
        to_index_array = compiled_states.whole
        zero = torch.zeros_like(structure.G[:1])
        base = zero[0]
        terms = zero[0]
        prior = (0.0, 0.0, 0.0, 0.0)
        position = (-1, -1)
        changes = torch.zeros_like(structure.G)
        for moves in structure.transitions:
            (j,) = [
                j for j, scale in enumerate(structure.scales) if j and moves.row in scale.states
            ]
            base = structure.G[moves.row]
            terms = moves.terms[0]
            position = (moves.row, j)
            prior = (moves.precision, moves.mean, *moves.interval)
            changes[moves.row] = terms
        values, by_phi = (rows.numbers(G.unsqueeze(0))[0] for G in (structure.G, changes))
        df, squares, upper = self.interweaving.prior
        fixed = (
            design.y,
            design.seen,
            design.F,
            self.used,
            structure.mean,
            structure.sd,
            to_index_array(rows.start),
            to_index_array(rows.columns),
            values,
            by_phi,
            to_index_array(self.layout.noisy),
            self.owner,
            to_index_array(self.interweaving.owner),
            design.X.T,
            structure.fades >= 0,
            self.A,
            slab.precision,
            slab.logit,
            df,
            squares,
            self.shape,
            upper,
            to_index_array(position),
            base,
            terms,
            design.y.new_tensor(prior),
        )
        return tuple(x.contiguous().numpy() if isinstance(x, Tensor) else x for x in fixed)

    # ---- the parts -------------------------------------------------------------------------------------------------
    def _states(
        self, place: Place, X: Tensor, drawn: SweepRandomNumbers, quick: bool
    ) -> tuple[Tensor, Tensor]:
        y = self.design.y - in_order(X * place.beta.unsqueeze(1))
        noise = self._noise(place)
        numbers = StateRandomNumbers(drawn.first[0], drawn.states[0], drawn.observations[0])
        draw = compiled_states.simulate_states if quick else tensor_states.simulate_states
        return draw(
            self.layout,
            y,
            self.structure.transition(place.phi),
            place.sigma[:, self.owner],
            noise,
            numbers,
        )

    def _noise(self, place: Place) -> Tensor:
        """Standard deviations of the observations [C, n]."""
        noise = place.sigma[:, :1].expand(-1, self.n)
        return noise / root(place.precisions) if self.structure.errors.student else noise

    def _weights(self, place: Place) -> Tensor:
        """λ [C, n] or [1, n], 0 at times that are not seen."""
        mask = self.design.seen.to(self.design.X).unsqueeze(0)
        return mask * place.precisions if self.structure.errors.student else mask

    def _moments(self, X: Tensor, left: Tensor, place: Place) -> tuple[Tensor, Tensor, Tensor]:
        """XᵀΛX, XᵀΛe and eᵀΛe of times that are seen."""
        weighed = left * place.precisions if self.structure.errors.student else left
        b = in_order((X * weighed.unsqueeze(2)).mT)
        if not (self.fades or self.structure.errors.student):
            A = self.A.expand(len(left), -1, -1)
        elif self.single:
            rows = X[:, self.design.seen].mT
            A = in_order(rows.unsqueeze(2) * rows.unsqueeze(1))
        else:
            A = X.mT @ (self._weights(place).unsqueeze(2) * X)
        return A, b, in_order(left * weighed)

    def _regression(
        self, place: Place, X: Tensor, left: Tensor, drawn: SweepRandomNumbers, quick: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        p = X.shape[2]
        numbers = SlabRandomNumbers(
            drawn.u[0, :, :p], drawn.u[0, :, p], drawn.g[0, :, [0, -1]], drawn.columns[0]
        )
        draw = compiled_slab.draw if quick else spike_slab.draw
        return draw(self.slab, *self._moments(X, left, place), self.count, place.gamma, numbers)

    def _dynamics(
        self, place: Place, alpha: Tensor, left: Tensor, generator: torch.Generator
    ) -> Tensor:
        phi = place.phi
        q = 0
        for moves in self.structure.transitions:
            block = slice(q, q + moves.count)
            (j,) = [
                j
                for j, scale in enumerate(self.structure.scales)
                if j and moves.row in scale.states
            ]
            besides = None
            if bool((self.structure.fades == q).any()):
                arguments = (left, self._weights(place), self.slab, place.gamma, place.sigma[:, 0])
                besides = FadingRegression(self.design.X, self.structure.fades, q, phi, *arguments)
            base = self.structure.G[moves.row]
            new = draw_dynamics(
                moves, base, alpha, place.sigma[:, j], phi[:, block], generator, besides
            )
            phi = torch.cat([phi[:, :q], new, phi[:, q + moves.count :]], 1)
            q += moves.count
        return phi

    def _tails(self, place: Place, X: Tensor, left: Tensor, generator: torch.Generator) -> Place:
        errors = self.structure.errors
        is_observed = self.design.seen
        z = (left - in_order(X * place.beta.unsqueeze(1))) / place.sigma[:, :1]
        nu = (
            place.nu
            if errors.nu is not None
            else draw_degrees_of_freedom(errors, z, is_observed, place.nu, generator)
        )
        return replace(place, nu=nu, precisions=draw_precisions(z, is_observed, nu, generator))
