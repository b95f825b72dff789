"""The trajectories of NUTS, grown by doubling for all chains together; a chain that is done is no longer evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import Seen
from components.inference.hamiltonian.leapfrog import DIVERGENT, Phase, acceptance, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.inference.hamiltonian.turns import Stretch, joined, merged_turns, stretch_turns

BLOCK = 8  # states of a subtree that are held at once, and checked by Gram matrices


@dataclass(frozen=True)
class Draw:
    """The next state of C chains, and what its trajectories were like; all [C] but ``z``."""

    z: Phase
    energy: Tensor
    acceptance: Tensor  # mean over all states of the trajectory but the first
    diverging: Tensor
    n_steps: Tensor
    depth: Tensor  # doublings that were kept


@dataclass(frozen=True)
class States:
    """States of phase space side by side, so that one operation moves all that belongs to them:
    θ, ∇ log π(θ), r, M⁻¹ r [..., P] each, then log π(θ) and H(θ, r)."""

    rows: Tensor  # [..., 4P + 2]

    @staticmethod
    def of(z: Phase, mass: Mass, out: Tensor | None = None) -> States:
        velocity = mass.velocity(z.r)
        energy = mass.kinetic(z.r, velocity) - z.value
        columns = [z.theta, z.gradient, z.r, velocity, z.value.unsqueeze(1), energy.unsqueeze(1)]
        return States(torch.cat(columns, 1, out=out))

    @property
    def dim(self) -> int:
        return (self.rows.shape[-1] - 2) // 4

    @property
    def r(self) -> Tensor:
        return self.rows.narrow(-1, 2 * self.dim, self.dim)

    @property
    def velocity(self) -> Tensor:
        return self.rows.narrow(-1, 3 * self.dim, self.dim)

    @property
    def momentum(self) -> Tensor:
        """r and M⁻¹ r, [..., 2, P]."""
        return self.rows.narrow(-1, 2 * self.dim, 2 * self.dim).unflatten(-1, (2, self.dim))

    @property
    def energy(self) -> Tensor:
        return self.rows.select(-1, -1)

    def phase(self) -> Phase:
        P = self.dim
        return Phase(self.rows.narrow(-1, 0, P), self.r, self.rows.select(-1, -2), self.rows.narrow(-1, P, P))


@dataclass(frozen=True)
class Subtree:
    """2^j leapfrog steps on from the edge of the trees of A chains; all [A] or [A, …].

    Where ``valid`` is False the subtree turned or diverged, and what is beyond is rubbish."""

    stretch: Stretch
    last: States  # the new edge
    log_weight: Tensor  # log Σ e^{H₀ − H}
    chosen: States  # a state with probability in proportion to its weight
    rates: Tensor  # Σ min(1, e^{H₀ − H})
    n_steps: Tensor
    diverging: Tensor
    valid: Tensor


def subtree(
    model: LogJoint, batch: Seen, mass: Mass, eps: float, z: States, energy: Tensor, size: int, u: Tensor
) -> Subtree:
    """``size`` = 2^j steps from the edge z of trees that began at energy H₀ [A]; u [size, A] uniform.

    Every aligned subtree of 2, 4, … states is checked for a U-turn when its last state is reached: those of up to
    ``BLOCK`` states by their Gram matrix; of longer ones that are not yet full only ends and sum are kept, j of each.

    Source: Hoffman & Gelman (2014), Algorithm 3, without its recursion."""
    A, every = len(energy), torch.arange(len(energy), device=energy.device)
    alive = torch.ones_like(every, dtype=torch.bool)
    diverging, n_steps = torch.zeros_like(alive), torch.zeros_like(every)
    rates, log_weight = torch.zeros_like(energy), torch.full_like(energy, -torch.inf)
    rows, chosen = every, z.rows
    waiting: list[Stretch] = []  # the subtrees that are not yet full, outermost first
    for begin in range(0, size, BLOCK):
        states = z.rows.new_empty(min(size, BLOCK), *z.rows.shape)  # [n, A, 4P + 2]; rubbish where not alive
        which = torch.full_like(every, -1)
        for i, now in enumerate(states):
            n_steps = n_steps + alive
            if len(rows) == A:
                z = States.of(leapfrog(model, batch, mass, eps, z.phase()), mass, out=now)
                error = energy_error(z.energy, energy)
            else:
                z = States.of(leapfrog(model, batch, mass, eps, States(z.rows[rows]).phase()), mass)
                error = torch.full_like(energy, torch.inf)
                error.index_copy_(0, rows, energy_error(z.energy, energy[rows]))
                z = States(now.index_copy_(0, rows, z.rows))
            rates = rates + acceptance(error)
            log_weight = torch.logaddexp(log_weight, -error)
            take = u[begin + i] < (-error - log_weight).exp()  # each state so far is then chosen by its weight
            which = torch.where(take, i, which)
            far = float(error.max()) > DIVERGENT
            if far:
                lost = error > DIVERGENT
                diverging, alive = diverging | (alive & lost), alive & ~lost
            if i & 1:
                full = States(states[i - (i & ~(i + 1)) : i + 1])  # the longest stretch that ends here
                alive = alive & ~stretch_turns(full.r, full.velocity)
            if far or i & 1:
                rows = alive.nonzero().flatten()
                if len(rows) == 0:
                    break
        picked = states[which.clamp(min=0), every]
        chosen = picked if begin == 0 else torch.where((which >= 0).unsqueeze(1), picked, chosen)
        block = States(states)
        stretch = Stretch(block.momentum[0].clone(), block.momentum[-1].clone(), block.r.sum(0))
        bits = begin // BLOCK
        while bits & 1:
            before = waiting.pop()
            alive = alive & ~merged_turns(before, stretch)
            stretch, bits = joined(before, stretch), bits >> 1
        waiting.append(stretch)
        rows = alive.nonzero().flatten()
        if len(rows) == 0:
            break
    return Subtree(waiting[0], z, log_weight, States(chosen), rates, n_steps, diverging, alive)


def no_u_turn(
    model: LogJoint, batch: Seen, mass: Mass, eps: float, z: Phase, max_depth: int, generator: torch.Generator
) -> Draw:
    """A draw for each chain from the states of a trajectory that doubles until it turns.

    A new half is taken for the next state with probability min(1, w_new/w_old).

    Source: Betancourt (2017), sections A.3.2 and A.4; Hoffman & Gelman (2014), Algorithm 6."""
    like, C = z.value, len(z.theta)
    states = States.of(z, mass)
    energy, drawn, rho = states.energy.contiguous(), states.rows, z.r
    edges = drawn.expand(2, *drawn.shape).clone()  # backwards, forwards: backwards is forwards with r flipped
    States(edges[0]).momentum.neg_()
    log_weight, rates = torch.zeros_like(like), torch.zeros_like(like)
    n_steps, depth = torch.zeros_like(like, dtype=torch.long), torch.zeros_like(like, dtype=torch.long)
    diverging = torch.zeros_like(like, dtype=torch.bool)
    rows = torch.arange(C, device=like.device)  # of the chains whose trajectories go on [A]
    for j in range(max_depth):
        u = torch.rand(2**j + 2, C, generator=generator, device=like.device, dtype=like.dtype)[:, rows]
        side = (u[0] < 0.5).long()
        time = (2 * side - 1).to(like.dtype).unsqueeze(1)
        near, far = States(edges[side, rows]), States(edges[1 - side, rows])
        new = subtree(model, batch, mass, eps, near, energy[rows], 2**j, u[2:])
        rates, n_steps = rates.index_add(0, rows, new.rates), n_steps.index_add(0, rows, new.n_steps)
        diverging = diverging.index_copy(0, rows, new.diverging)
        depth = depth.index_add(0, rows, new.valid.long())
        old_weight = log_weight[rows]
        take = new.valid & (u[1] < (new.log_weight - old_weight).exp())
        drawn = drawn.index_copy(0, rows, torch.where(take.unsqueeze(1), new.chosen.rows, drawn[rows]))
        old = Stretch(-far.momentum, near.momentum, time * rho[rows])
        going = new.valid & ~merged_turns(old, new.stretch)
        log_weight = log_weight.index_copy(0, rows, torch.logaddexp(old_weight, new.log_weight))
        rho = rho.index_copy(0, rows, time * (old.rho + new.stretch.rho))
        edges[side, rows] = new.last.rows
        rows = rows[going]
        if len(rows) == 0:
            break
    z = States(drawn).phase()
    z = Phase(z.theta.contiguous(), z.r.contiguous(), z.value.contiguous(), z.gradient.contiguous())
    return Draw(z, States(drawn).energy.contiguous(), rates / n_steps, diverging, n_steps, depth)
