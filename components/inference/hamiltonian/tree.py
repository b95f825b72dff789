"""The trajectories of NUTS, grown by doubling for all chains together; a chain that is done is no longer evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import Seen
from components.inference.hamiltonian.leapfrog import DIVERGENT, Phase, acceptance, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass


@dataclass(frozen=True)
class Draw:
    """The next state of C chains, and what its trajectories were like; all [C] but ``z``."""

    z: Phase
    energy: Tensor
    acceptance: Tensor  # mean over all states of the trajectory but the first
    diverging: Tensor
    n_steps: Tensor
    depth: Tensor  # doublings that were kept


@dataclass
class Subtree:
    """2^j leapfrog steps on from the edge of the trees of A chains; all [A] or [A, P].

    Where ``valid`` is False the subtree turned or diverged, and what is beyond is rubbish."""

    first: Tensor  # r at the step next to the old edge
    last: Phase  # the new edge
    rho: Tensor  # Σ r
    log_weight: Tensor  # log Σ e^{H₀ − H}
    chosen: Phase  # a state with probability in proportion to its weight
    energy: Tensor  # of the chosen state
    rates: Tensor  # Σ min(1, e^{H₀ − H})
    n_steps: Tensor
    diverging: Tensor
    valid: Tensor


def turns(mass: Mass, rho: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Whether a stretch with momenta summing to ρ turns back at an end: aᵀM⁻¹ρ ≤ 0 or bᵀM⁻¹ρ ≤ 0; [..., A, P] -> [..., A].

    Source: Betancourt (2017), section A.4.2."""
    across = mass.velocity(rho)
    return ((a * across).sum(-1) <= 0) | ((b * across).sum(-1) <= 0)


def merged_turns(mass: Mass, left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> Tensor:
    """Whether the union of two neighbouring stretches turns, or either with the other's nearest state (Stan's checks).

    Each is (outer end, end where they meet, sum) of momenta [..., A, P]; a stretch of one state has equal ends."""
    (a, inner_a, rho_a), (b, inner_b, rho_b) = left, right
    rho = torch.stack([rho_a + rho_b, rho_a + inner_b, rho_b + inner_a])
    return turns(mass, rho, torch.stack([a, a, inner_a]), torch.stack([b, inner_b, b])).any(0)


def subtree(
    model: LogJoint, batch: Seen, mass: Mass, eps: float, z: Phase, energy: Tensor, size: int, u: Tensor
) -> Subtree:
    """``size`` = 2^j steps from the edge z of trees that began at energy H₀ [A]; u [size, A] uniform.

    Every aligned subtree of 2, 4, … states is checked for a U-turn when its last state is reached; of those that are
    not yet full only the first momentum, the sum before it and the momentum before it are kept, j of each.

    Source: Hoffman & Gelman (2014), Algorithm 3, without its recursion."""
    A = len(z.theta)
    alive = torch.ones(A, dtype=torch.bool, device=energy.device)
    diverging, n_steps = torch.zeros_like(alive), torch.zeros_like(alive, dtype=torch.long)
    rates, log_weight = torch.zeros_like(energy), torch.full_like(energy, -torch.inf)
    rho = torch.zeros_like(z.r)
    chosen, chosen_energy, first = z, energy, z.r
    starts: list[tuple[Tensor, Tensor, Tensor]] = []  # of the subtrees that are not yet full, outermost first
    for n in range(size):
        rows = alive.nonzero().flatten()
        if len(rows) == 0:
            break
        before = z.r
        if len(rows) == A:
            z = leapfrog(model, batch, mass, eps, z)
        else:
            z = z.with_rows(rows, leapfrog(model, batch, mass, eps, z.rows(rows)))
        first = z.r if n == 0 else first
        now = z.energy(mass)
        error = energy_error(now, energy)
        far = alive & (error > DIVERGENT)
        diverging = diverging | far
        n_steps = n_steps + alive
        rates = rates + torch.where(alive, acceptance(error), 0.0)
        log_weight = torch.logaddexp(log_weight, -error)
        take = alive & (u[n] < (-error - log_weight).exp())  # each state so far is then chosen by its weight
        chosen, chosen_energy = Phase.where(take, z, chosen), torch.where(take, now, chosen_energy)
        alive = alive & ~far
        starts.append((z.r, rho, before))
        rho = rho + z.r
        bits = n
        while bits & 1:  # the stretch that starts at b, and the one as long before it, which starts at a
            b, sum_b, end_a = starts.pop()
            a, sum_a, _ = starts[-1]
            turned = merged_turns(mass, (a, end_a, sum_b - sum_a), (z.r, b, rho - sum_b))
            alive = alive & ~turned
            bits >>= 1
    return Subtree(first, z, rho, log_weight, chosen, chosen_energy, rates, n_steps, diverging, alive)


def no_u_turn(
    model: LogJoint, batch: Seen, mass: Mass, eps: float, z: Phase, max_depth: int, generator: torch.Generator
) -> Draw:
    """A draw for each chain from the states of a trajectory that doubles until it turns.

    A new half is taken for the next state with probability min(1, w_new/w_old).

    Source: Betancourt (2017), sections A.3.2 and A.4; Hoffman & Gelman (2014), Algorithm 6."""
    like, C = z.value, len(z.theta)
    energy0 = z.energy(mass)
    edges = [z, z]  # backwards, forwards
    drawn, energy, rho = z, energy0, z.r
    log_weight, rates = torch.zeros_like(like), torch.zeros_like(like)
    n_steps, depth = torch.zeros_like(like, dtype=torch.long), torch.zeros_like(like, dtype=torch.long)
    diverging = torch.zeros_like(like, dtype=torch.bool)
    going = ~diverging
    for j in range(max_depth):
        rows = going.nonzero().flatten()  # [A]
        if len(rows) == 0:
            break
        u = torch.rand(2**j + 2, C, generator=generator, device=like.device, dtype=like.dtype)[:, rows]
        forwards = u[0] < 0.5
        time = torch.where(forwards, 1.0, -1.0).to(like.dtype).unsqueeze(1)  # backwards is forwards with r flipped
        near = Phase.where(forwards, edges[1].rows(rows), edges[0].rows(rows))
        near = replace(near, r=time * near.r)
        far = time * torch.where(forwards.unsqueeze(1), edges[0].r[rows], edges[1].r[rows])
        new = subtree(model, batch, mass, eps, near, energy0[rows], 2**j, u[2:])
        rates, n_steps = rates.index_add(0, rows, new.rates), n_steps.index_add(0, rows, new.n_steps)
        diverging = diverging.index_copy(0, rows, new.diverging)
        depth = depth.index_add(0, rows, new.valid.long())
        old_weight = log_weight[rows]
        take = new.valid & (u[1] < (new.log_weight - old_weight).exp())
        drawn = drawn.with_rows(rows, Phase.where(take, new.chosen, drawn.rows(rows)))
        energy = energy.index_copy(0, rows, torch.where(take, new.energy, energy[rows]))
        old_rho = time * rho[rows]
        turned = merged_turns(mass, (far, near.r, old_rho), (new.last.r, new.first, new.rho))
        going = going.index_copy(0, rows, new.valid & ~turned)
        log_weight = log_weight.index_copy(0, rows, torch.logaddexp(old_weight, new.log_weight))
        rho = rho.index_copy(0, rows, time * (old_rho + new.rho))
        last = replace(new.last, r=time * new.last.r)
        for side, moves in ((0, ~forwards), (1, forwards)):
            edges[side] = edges[side].with_rows(rows, Phase.where(moves, last, edges[side].rows(rows)))
    return Draw(drawn, energy, rates / n_steps, diverging, n_steps, depth)
