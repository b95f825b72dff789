"""The trajectories of NUTS, grown by doubling for all chains together; a chain that is done is no
longer evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.leapfrog import (
    DIVERGENT,
    Phase,
    acceptance,
    energy_error,
    leapfrog,
)
from components.inference.hamiltonian.mass import Mass
from components.inference.hamiltonian.turns import (
    TrajectorySegment,
    is_merged_turning,
    is_stretch_turning,
    join_stretches,
)
from components.maths.exponential.standard_draws import standard_uniform

BLOCK = 8  # states of a subtree that are held together, and checked by Gram matrices


@dataclass(frozen=True)
class Draw:
    """The next state of C chains, and what its trajectories were like; all [C] but ``z``."""

    z: Phase
    energy: Tensor
    acceptance: Tensor  # mean over all states of the trajectory but the first
    diverging: Tensor
    n_steps: Tensor
    depth: Tensor  # doublings accepted


@dataclass(frozen=True)
class States:
    """States of phase space side by side, so that one operation moves all that belongs to them:
    θ, ∇ log π(θ), r, M⁻¹ r [..., P] each, then log π(θ) and H(θ, r)."""

    rows: Tensor  # [..., 4P + 2]

    @staticmethod
    def of(z: Phase, mass: Mass, out: Tensor) -> Tensor:
        """Write the states of z into ``out`` [C, 4P + 2] and return their energies [C]."""
        velocity = mass.velocity(z.r)
        energy = mass.kinetic(z.r, velocity) - z.value
        torch.cat(
            [z.theta, z.gradient, z.r, velocity, z.value.unsqueeze(1), energy.unsqueeze(1)],
            1,
            out=out,
        )
        return energy

    @property
    def dim(self) -> int:
        return (self.rows.shape[-1] - 2) // 4

    @property
    def momentum(self) -> Tensor:
        """r and M⁻¹ r, [..., 2, P]."""
        P = self.dim
        return self.rows.narrow(-1, 2 * P, 2 * P).unflatten(-1, (2, P))

    def phase(self) -> Phase:
        P = self.dim
        theta, gradient, r, _, value, _ = self.rows.split([P, P, P, P, 1, 1], -1)
        return Phase(theta, r, value.squeeze(-1), gradient)


@dataclass(frozen=True)
class Subtree:
    """2^j leapfrog steps on from the edge of the trees of A chains; all [A] or [A, …].

    Where ``valid`` is False the subtree turned or diverged, and what is beyond is rubbish."""

    stretch: TrajectorySegment
    last: Tensor  # the new edge, rows of States
    log_weight: Tensor  # log Σ e^{H₀ − H}
    chosen: Tensor  # rows of States, each chosen with probability in proportion to its weight
    rates: Tensor  # Σ min(1, e^{H₀ − H})
    n_steps: Tensor
    diverging: Tensor
    valid: Tensor


def rows_of(x: Tensor, rows: Tensor) -> Tensor:
    """x at these rows, in rising order."""
    return x if rows.shape[0] == x.shape[0] else x.index_select(0, rows)


def replace_rows(x: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """x with ``new`` in the place of these rows."""
    return new if rows.shape[0] == x.shape[0] else x.index_copy(0, rows, new)


def add_rows(x: Tensor, rows: Tensor, new: Tensor) -> None:
    """Adds ``new`` to these rows of x."""
    if rows.shape[0] == x.shape[0]:
        x += new
    else:
        x.index_add_(0, rows, new.to(x.dtype))


@cache
def _places(n: int, device: torch.device) -> Tensor:
    return torch.arange(1, n + 1, device=device).unsqueeze(1)


def choices(weights: Tensor, before: Tensor | None, u: Tensor) -> tuple[Tensor, Tensor]:
    """Which of n states in turn takes the place of those before, −1 where none, and log Σ w with
    them, both [A].

    The i-th does where u_i < w_i / Σ_{k ≤ i} w_k, so that each is chosen by its weight; log w = H₀
    − H and u [n, A]; ``before`` is the logarithm of the sum of weights before them, None: there are
    none."""
    n = len(weights)
    sums = (weights if before is None else torch.cat([before.unsqueeze(0), weights])).logcumsumexp(
        0
    )
    take = u < (weights - sums[-n:]).exp()
    return (take * _places(n, u.device)).amax(0) - 1, sums[-1]


def subtree(
    model: LogJoint,
    batch: ModelBatch,
    mass: Mass,
    eps: float,
    edge: Tensor,
    energy: Tensor,
    size: int,
    u: Tensor,
) -> Subtree:
    """Take ``size`` = 2^j steps from the edge of trees that began at energy H₀ [A].

    The edge has rows of States; u [size, A] is uniform.  Every aligned subtree of 2, 4, …
    states is checked for a U-turn when its last state is reached: subtrees of up to
    ``BLOCK`` states by their Gram matrix; for longer ones that are not yet full only ends
    and sum are kept, j of each.

    Source: Hoffman & Gelman (2014), Algorithm 3, without its recursion.
    """
    A = len(energy)
    z = States(edge).phase()
    rows = every = torch.arange(A, device=energy.device)
    alive = torch.ones_like(every, dtype=torch.bool)
    diverging = torch.zeros_like(alive)
    n_steps = torch.zeros_like(every)
    rates = torch.zeros_like(energy)
    last = edge
    proposal = edge
    together = 0  # steps that all took count once
    log_weight: Tensor | None = None
    waiting: list[TrajectorySegment] = []  # the subtrees that are not full yet, outermost first
    for begin in range(0, size, BLOCK):
        # [n, A, 4P + 2]; undefined where not alive
        trajectory = edge.new_empty(min(size, BLOCK), *edge.shape)
        errors: list[Tensor] = []
        for i, now in enumerate(trajectory):
            if rows.shape[0] == A:
                together += 1
                z = leapfrog(model, batch, mass, eps, z)
                error = energy_error(States.of(z, mass, now), energy)
            else:
                n_steps += alive
                z = leapfrog(model, batch, mass, eps, States(last.index_select(0, rows)).phase())
                new_states = last.new_empty(rows.shape[0], last.shape[1])
                error = torch.full_like(energy, torch.inf)
                error[rows] = energy_error(States.of(z, mass, new_states), energy[rows])
                now.index_copy_(0, rows, new_states)
            errors.append(error)
            last = now
            has_diverged = float(error.max()) > DIVERGENT
            if has_diverged:
                is_divergent = error > DIVERGENT
                diverging = diverging | (alive & is_divergent)
                alive = alive & ~is_divergent
            if i & 1:
                alive = alive & ~is_stretch_turning(
                    States(trajectory[i - (i & ~(i + 1)) : i + 1]).momentum
                )
            if has_diverged or i & 1:
                rows = alive.nonzero().flatten()
                if rows.shape[0] == 0:
                    break
        error = torch.stack(errors)  # [n, A], fewer where none is alive
        rates += acceptance(error).sum(0)
        if size == 1:  # there is no choice
            proposal = last
            log_weight = -errors[0]
        else:
            indices, log_weight = choices(-error, log_weight, u[begin : begin + len(errors)])
            picked = trajectory.flatten(0, 1).index_select(
                0, torch.add(every, indices.clamp(min=0), alpha=A)
            )
            proposal = (
                picked if begin == 0 else torch.where((indices >= 0).unsqueeze(1), picked, proposal)
            )
        momenta = States(trajectory).momentum  # [n, A, 2, P]
        stretch = TrajectorySegment(momenta[0], momenta[-1], momenta[:, :, 0].sum(0))
        if size > BLOCK:  # only the ends are kept
            stretch = replace(stretch, first=stretch.first.clone(), last=stretch.last.clone())
        bits = begin // BLOCK
        while bits & 1:
            before = waiting.pop()
            alive = alive & ~is_merged_turning(before, stretch)
            stretch = join_stretches(before, stretch)
            bits = bits >> 1
        waiting.append(stretch)
        if begin:
            rows = alive.nonzero().flatten()
        if rows.shape[0] == 0:
            break
    assert log_weight is not None
    return Subtree(
        stretch=waiting[0],
        last=last,
        log_weight=log_weight,
        chosen=proposal,
        rates=rates,
        n_steps=n_steps + together,
        diverging=diverging,
        valid=alive,
    )


def no_u_turn(
    model: LogJoint,
    batch: ModelBatch,
    mass: Mass,
    eps: float,
    z: Phase,
    max_depth: int,
    generator: torch.Generator,
) -> Draw:
    """A draw for each chain from the states of a trajectory that doubles until it turns.

    A new half is taken for the next state with probability min(1, w_new/w_old).

    Source: Betancourt (2017), sections A.3.2 and A.4; Hoffman & Gelman (2014), Algorithm 6."""
    like = z.value
    C = len(z.theta)
    sample = like.new_empty(C, 4 * z.theta.shape[1] + 2)
    rho = z.r
    energy = States.of(z, mass, sample)
    # [2C, 4P + 2], backwards, forwards: backwards is forwards with r flipped
    edges = torch.cat([sample, sample])
    States(edges[:C]).momentum.neg_()
    log_weight = torch.zeros_like(like)
    rates = torch.zeros_like(like)
    n_steps = torch.zeros_like(like, dtype=torch.long)
    depth = torch.zeros_like(like, dtype=torch.long)
    diverging = torch.zeros_like(like, dtype=torch.bool)
    rows = torch.arange(C, device=like.device)  # chains with a trajectory that goes on [A]
    for j in range(max_depth):
        u = standard_uniform((2**j + 2, C), generator, like)
        u = u if rows.shape[0] == C else u[:, rows]
        forwards = u[0] < 0.5
        accept = u[1]
        time = torch.where(forwards, 1.0, -1.0).to(like.dtype).unsqueeze(1)
        side = torch.add(rows, forwards, alpha=C)  # of ``edges``
        near = edges.index_select(0, side)
        far_momenta = States(edges).momentum.index_select(0, torch.add(rows, ~forwards, alpha=C))
        new = subtree(
            model=model,
            batch=batch,
            mass=mass,
            eps=eps,
            edge=near,
            energy=rows_of(energy, rows),
            size=2**j,
            u=u[2:],
        )
        old_rho = time * rows_of(rho, rows)
        old_weight = rows_of(log_weight, rows)
        is_running = new.valid & ~is_merged_turning(
            TrajectorySegment(-far_momenta, States(near).momentum, old_rho), new.stretch
        )
        take = new.valid & (accept < (new.log_weight - old_weight).exp())
        sample = replace_rows(
            sample, rows, torch.where(take.unsqueeze(1), new.chosen, rows_of(sample, rows))
        )
        add_rows(rates, rows, new.rates)
        add_rows(n_steps, rows, new.n_steps)
        add_rows(depth, rows, new.valid)
        diverging = replace_rows(diverging, rows, new.diverging)
        on = is_running.nonzero().flatten()
        if on.shape[0] == 0:
            break
        rho = replace_rows(rho, rows, time * (old_rho + new.stretch.rho))
        log_weight = replace_rows(log_weight, rows, torch.logaddexp(old_weight, new.log_weight))
        edges.index_copy_(0, side, new.last)
        rows = rows_of(rows, on)
    z = States(sample).phase()
    z = Phase(z.theta.contiguous(), z.r.contiguous(), z.value.contiguous(), z.gradient.contiguous())
    return Draw(z, sample[:, -1].contiguous(), rates / n_steps, diverging, n_steps, depth)
