"""The trajectories of NUTS, grown by doubling for all chains together; a chain that is done is no
longer evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

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
    BEFORE,
    TrajectorySegment,
    is_block_straight,
    is_merged_straight,
    is_stretch_straight,
    join_stretches,
)
from components.maths.exponential.standard_draws import standard_uniform

BLOCK = 8  # states of a subtree that are held together, and checked by Gram matrices


class Dynamics(NamedTuple):
    """Hamiltonian dynamics in leapfrog steps of size ε."""

    model: LogJoint
    batch: ModelBatch
    mass: Mass
    eps: float

    def step(self, z: Phase) -> Phase:
        return leapfrog(self.model, self.batch, self.mass, self.eps, z)


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
class Block:
    """Up to ``BLOCK`` states that A trajectories reach one after another, behind what is known of
    the trajectories before: row 0 has the sum ρ of their momenta and the velocity of their first
    state, row 1 is their last state.  All in the direction of the new states."""

    rows: Tensor  # of States [2 + n, A, 4P + 2]
    r: Tensor  # [A, 2 + n, P]
    velocity: Tensor  # [A, P, 2 + n]

    @staticmethod
    def of(rows: Tensor) -> Block:
        r, velocity = States(rows).momentum.unbind(2)
        return Block(rows, r.transpose(0, 1), velocity.permute(1, 2, 0))

    @property
    def states(self) -> Tensor:
        """The new states, rows of States [n, A, 4P + 2]."""
        return self.rows[BEFORE:]

    def before(self) -> TrajectorySegment:
        """The trajectories before; r of the first state is not known."""
        momenta = States(self.rows[:BEFORE]).momentum
        return TrajectorySegment(momenta[0], momenta[1], momenta[0, :, 0])

    def stretch(self) -> TrajectorySegment:
        """The new states, which may be overwritten."""
        momenta = States(self.states).momentum
        return TrajectorySegment(
            momenta[0].clone(), momenta[-1].clone(), momenta[:, :, 0].sum(0)
        )


@dataclass(frozen=True)
class Subtree:
    """2^j leapfrog steps on from the edge of the trees of A chains; all [A] or [A, …].

    Where ``valid`` is False the subtree turned or diverged, and what is beyond is rubbish."""

    rho: Tensor  # sum of its momenta
    last: Tensor  # the new edge, rows of States
    log_weight: Tensor  # log Σ e^{H₀ − H}
    chosen: Tensor  # rows of States, each chosen with probability in proportion to its weight
    rates: Tensor  # Σ min(1, e^{H₀ − H})
    n_steps: Tensor
    diverging: Tensor
    valid: Tensor
    straight: Tensor  # valid, and the doubled trajectory does not turn


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


class Walkers:
    """The chains, of A, that still take steps in a subtree."""

    def __init__(self, dynamics: Dynamics, z: Phase, energy: Tensor):
        self.dynamics = dynamics
        self.z = z  # of those that take steps
        self.rows = torch.arange(len(energy), device=energy.device)  # their places among the A
        self.energy = energy  # H₀ of those
        self.taken = 0
        self.n_steps = torch.zeros_like(self.rows)  # [A]
        self.diverging = torch.zeros_like(self.rows, dtype=torch.bool)  # [A]

    def advance(self, out: Tensor) -> Tensor:
        """Take a step, write its states into ``out`` [A, 4P + 2] and return the errors of the
        energy [A], +∞ of chains that wait."""
        mass = self.dynamics.mass
        self.z = self.dynamics.step(self.z)
        self.taken += 1
        A = out.shape[0]
        k = self.rows.shape[0]
        if k == A:
            return energy_error(States.of(self.z, mass, out), self.energy)
        states = out.new_empty(k, out.shape[1])
        error = energy_error(States.of(self.z, mass, states), self.energy)
        out.index_copy_(0, self.rows, states)
        return error.new_full((A,), torch.inf).index_copy_(0, self.rows, error)

    def record(self, error: Tensor) -> None:
        """Note the steps taken, and who diverged at the last, by its errors [A]."""
        self.n_steps.index_fill_(0, self.rows, self.taken)
        is_divergent = rows_of(error, self.rows) > DIVERGENT
        self.diverging = replace_rows(self.diverging, self.rows, is_divergent)

    def drop(self, error: Tensor, alive: Tensor) -> bool:
        """Chains that are not alive [A] take no more steps.  False: none is left."""
        left = alive.nonzero().flatten()
        if left.shape[0] < self.rows.shape[0]:
            self.record(error)
            places = torch.searchsorted(self.rows, left)
            z = self.z
            self.z = Phase(z.theta[places], z.r[places], z.value[places], z.gradient[places])
            self.energy = self.energy[places]
            self.rows = left
        return left.shape[0] > 0


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


class Proposal:
    """The state of a subtree that is chosen, as its blocks are reached."""

    def __init__(self) -> None:
        self.rows: Tensor | None = None  # of States [A, 4P + 2]
        self.log_weight: Tensor | None = None  # log Σ e^{H₀ − H} so far [A]

    def update(self, states: Tensor, error: Tensor, u: Tensor) -> None:
        """Choose among these states too, [n, A, 4P + 2] with errors [n, A] or fewer."""
        n, A = u.shape
        if n == 1:  # there is no choice
            self.rows = states[0]
            self.log_weight = -error[0]
            return
        index, self.log_weight = choices(-error, self.log_weight, u[: len(error)])
        places = torch.arange(A, device=u.device).add_(index.clamp(min=0), alpha=A)
        rows = states.flatten(0, 1).index_select(0, places)
        if self.rows is not None:
            rows = torch.where((index >= 0).unsqueeze(1), rows, self.rows)
        self.rows = rows


def walk_block(walkers: Walkers, block: Block, whole: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Fill the block.

    Returns the errors of its states [n, A], fewer where no chain is left; then, [A], True where no
    stretch turned or diverged; and True where, besides, it does not turn with the trajectory before
    it, asked if the block is the ``whole`` subtree."""
    states = block.states
    n = len(states)
    errors: list[Tensor] = []
    for i, now in enumerate(states):
        error = walkers.advance(now)
        errors.append(error)
        straight = valid = error <= DIVERGENT
        if i == n - 1 and whole:
            own, both = is_block_straight(block.r, block.velocity)
            straight = valid & both
            valid = valid & own
        elif i & 1:
            end = BEFORE + i + 1
            begin = BEFORE + i - (i & ~(i + 1))
            own = is_stretch_straight(block.r[:, begin:end], block.velocity[:, :, begin:end])
            straight = valid = valid & own
        if i < n - 1 and not walkers.drop(error, valid):
            break
    return torch.stack(errors), valid, straight


def subtree(dynamics: Dynamics, block: Block, energy: Tensor, size: int, u: Tensor) -> Subtree:
    """Take ``size`` = 2^j steps from the last states of trajectories that began at energy H₀ [A].

    ``block`` has room for all steps or for ``BLOCK``; u [size, A] is uniform.  Every aligned
    subtree of 2, 4, … states is checked for a U-turn when its last state is reached: subtrees of up
    to ``BLOCK`` states by their Gram matrix; for longer ones that are not yet full only ends and
    sum are kept, j of each.

    Source: Hoffman & Gelman (2014), Algorithm 3, without its recursion.
    """
    walkers = Walkers(dynamics, States(block.rows[1]).phase(), energy)
    n = len(block.states)
    proposal = Proposal()
    rates = torch.zeros_like(energy)
    waiting: list[TrajectorySegment] = []  # the subtrees that are not full yet, outermost first
    for begin in range(0, size, n):
        error, valid, straight = walk_block(walkers, block, n == size)
        rates += acceptance(error).sum(0)
        proposal.update(block.states, error, u[begin : begin + n])
        if n == size:
            break
        stretch = block.stretch()
        bits = begin // n
        while bits & 1:
            before = waiting.pop()
            valid = valid & is_merged_straight(before, stretch)
            stretch = join_stretches(before, stretch)
            bits = bits >> 1
        waiting.append(stretch)
        straight = valid
        if begin + n == size:
            straight = valid & is_merged_straight(block.before(), stretch)
        elif not walkers.drop(error[-1], valid):
            break
    walkers.record(error[-1])
    assert proposal.rows is not None and proposal.log_weight is not None
    return Subtree(
        rho=waiting[0].rho if waiting else States(block.states).momentum[:, :, 0].sum(0),
        last=block.states[-1],
        log_weight=proposal.log_weight,
        chosen=proposal.rows,
        rates=rates,
        n_steps=walkers.n_steps,
        diverging=walkers.diverging,
        valid=valid,
        straight=straight,
    )


def open_block(n: int, edges: Tensor, rows: Tensor, forwards: Tensor, rho: Tensor) -> Block:
    """Room for n states of the trajectories ``rows`` [A], in these directions, behind what is known
    of them: their edges [2C, 4P + 2], and the sums of their momenta [A, P] in this direction."""
    C = len(edges) // 2
    P = rho.shape[1]
    block = Block.of(edges.new_empty(BEFORE + n, len(rows), edges.shape[1]))
    near = torch.add(rows, forwards, alpha=C)
    far = torch.add(rows, ~forwards, alpha=C)
    torch.index_select(edges, 0, near, out=block.rows[1])
    before = States(block.rows[0]).momentum
    before[:, 0] = rho
    torch.neg(edges[:, 3 * P : 4 * P].index_select(0, far), out=before[:, 1])
    return block


def no_u_turn(dynamics: Dynamics, z: Phase, max_depth: int, generator: torch.Generator) -> Draw:
    """A draw for each chain from the states of a trajectory that doubles until it turns.

    A new half is taken for the next state with probability min(1, w_new/w_old).

    Source: Betancourt (2017), sections A.3.2 and A.4; Hoffman & Gelman (2014), Algorithm 6."""
    like = z.value
    C, P = z.theta.shape
    sample = like.new_empty(C, 4 * P + 2)
    rho = z.r
    energy = States.of(z, dynamics.mass, sample)
    # [2C, 4P + 2], backwards, forwards: backwards is forwards with r flipped
    edges = torch.cat([sample, sample])
    edges[:C, 2 * P : 4 * P].neg_()
    one = torch.ones_like(like[:1])
    log_weight = torch.zeros_like(like)
    rates = torch.zeros_like(like)
    n_steps = torch.zeros_like(like, dtype=torch.long)
    depth = torch.zeros_like(n_steps)
    diverging = torch.zeros_like(n_steps, dtype=torch.bool)
    rows = torch.arange(C, device=like.device)  # chains with a trajectory that goes on [A]
    for j in range(max_depth):
        size = 2**j
        u = standard_uniform((size + 2, C), generator, like)
        u = u if rows.shape[0] == C else u[:, rows]
        forwards = u[0] < 0.5
        accept = u[1]
        time = torch.where(forwards, one, -one).unsqueeze(1)
        old_rho = time * rows_of(rho, rows)
        old_weight = rows_of(log_weight, rows)
        block = open_block(min(size, BLOCK), edges, rows, forwards, old_rho)
        new = subtree(dynamics, block, rows_of(energy, rows), size, u[2:])
        take = new.valid & (accept < (new.log_weight - old_weight).exp())
        sample = replace_rows(
            sample, rows, torch.where(take.unsqueeze(1), new.chosen, rows_of(sample, rows))
        )
        add_rows(rates, rows, new.rates)
        add_rows(n_steps, rows, new.n_steps)
        add_rows(depth, rows, new.valid)
        diverging = replace_rows(diverging, rows, new.diverging)
        on = new.straight.nonzero().flatten()
        if on.shape[0] == 0:
            break
        rho = replace_rows(rho, rows, time * (old_rho + new.rho))
        log_weight = replace_rows(log_weight, rows, torch.logaddexp(old_weight, new.log_weight))
        edges.index_copy_(0, torch.add(rows, forwards, alpha=C), new.last)
        rows = rows_of(rows, on)
    z = States(sample).phase()
    z = Phase(z.theta.contiguous(), z.r.contiguous(), z.value.contiguous(), z.gradient.contiguous())
    return Draw(z, sample[:, -1].contiguous(), rates / n_steps, diverging, n_steps, depth)
