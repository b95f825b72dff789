"""Small linear Gaussian sequences, and filters run on them without the loop."""

from __future__ import annotations

import torch

from components.problems.sequence import LinearGaussianSystem, Sequence


def system(seed: int = 0) -> LinearGaussianSystem:
    """A stable system with three states and two observations, nothing in it diagonal."""
    g = torch.Generator().manual_seed(seed)

    def spd(d: int) -> torch.Tensor:
        b = torch.randn(d, d, generator=g, dtype=torch.float64)
        return b @ b.T / d + 0.3 * torch.eye(d, dtype=torch.float64)

    turn = torch.linalg.qr(torch.randn(3, 3, generator=g, dtype=torch.float64))[0]
    mean = torch.randn(3, generator=g, dtype=torch.float64)
    H = torch.randn(2, 3, generator=g, dtype=torch.float64)
    return LinearGaussianSystem(0.9 * turn, spd(3), H, spd(2), mean, spd(3))


def sequence(s: LinearGaussianSystem, length: int, replicates: int, seed: int = 1) -> Sequence:
    """One sequence drawn from the system; every replicate sees the same observations, so only a filter's noise differs."""
    g = torch.Generator().manual_seed(seed)

    def normal(covariance: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(covariance) @ torch.randn(len(covariance), generator=g, dtype=torch.float64)

    x, states, seen = s.m0 + normal(s.P0), [], []
    for _ in range(length):
        x = s.A @ x + normal(s.Q)
        states.append(x)
        seen.append(s.H @ x + normal(s.Sigma))
    observations = torch.stack(seen).expand(replicates, -1, -1).contiguous()
    return Sequence("test", torch.stack(states).unsqueeze(0), observations, s, [f"x{j}" for j in range(len(x))])


def run(inference, model, problem, rng, spoil=None):
    """The posterior after all steps; ``spoil`` may damage the state between steps."""
    state = inference.init(model, problem, rng)
    for _, batch in problem.batches("observation", rng, 0, problem.length("observation")):
        state, _ = inference.step(state, batch, rng)
        if spoil is not None:
            spoil(state)
    return inference.posterior(state)
