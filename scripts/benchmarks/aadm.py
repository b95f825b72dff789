"""Adversarial α-divergences with K = 10 draws, against a loop over draws and separate draws per row.

    python -m scripts.benchmarks aadm      # networks of 2 × 50 units, batches of 10 and 50

The loop evaluates the K networks sequentially and takes the same two steps of Adam with the same
noise.  For a batch of one row, ``rows: own`` equals the shared draws."""

from __future__ import annotations

from argparse import Namespace

import torch
from torch import Tensor
from torch.nn import functional as F

from components.contracts.problems import Batch
from components.inference.alpha.power_mean import log_power_mean
from components.inference.implicit.adversarial import Adversarial, AdversarialState
from components.inference.implicit.contrast import contrast, discrimination_loss
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, repeat_way
from scripts.benchmarks.workloads import component, regression

PEERS = ("loop over draws", "rows: own")
# inputs of Boston housing
INPUTS = 13
ROWS = 455
NETWORK = {"widths": [50, 50], "activation": "leaky_relu", "noise_init": 1.0, "noise_spread": None}
METHOD = {"alpha": 0.5, "lr": 1e-3, "discriminator_lr": 2e-3, "n_samples": 10}


def step_by_loop(
    method: Adversarial, state: AdversarialState, batch: Batch, rng: Streams
) -> Tensor:
    """Compute the objective by a loop over draws, each with its own network; gradients and both
    steps are unchanged."""
    q = state.q
    T = state.discriminator
    network = state.q.network
    assert T is not None
    K = method.n_samples
    noise = torch.randn(K, len(q.noise_mean), generator=rng.noise)
    draws = []
    fits = []
    for k in range(K):
        theta = q.body(q.noise_mean + (0.5 * q.noise_log_variance).exp() * noise[k])
        h = batch.x
        layers = network.layers(theta)
        for weight, bias in layers[:-1]:
            h = F.leaky_relu(F.linear(h, weight, bias), 0.2)
        draws.append(theta)
        fits.append(network.log_prob(F.linear(h, *layers[-1])[..., None], batch))
    moments = contrast(torch.stack(draws))
    for p in T.parameters():
        p.requires_grad_(False)
    ratio = torch.stack([T(row) for row in moments.z_scores]).mean()
    for p in T.parameters():
        p.requires_grad_(True)
    fit = batch.scale * log_power_mean(torch.stack(fits), method.power).sum()
    objective = fit - moments.kl(network.prior_std, ratio)
    state.optimizer.zero_grad()
    (-objective / (batch.scale * len(batch.x))).backward()
    state.optimizer.step()
    ours = moments.z_scores.detach()
    other = torch.randn(ours.shape, generator=rng.noise)
    losses = [discrimination_loss(T, ours[k : k + 1], other[k : k + 1]) for k in range(K)]
    assert state.discriminator_optimizer is not None
    state.discriminator_optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    state.discriminator_optimizer.step()
    return objective.detach()


class Steps:
    """Steps on one batch of B rows, with draws shared by the rows or separate for each row."""

    def __init__(self, B: int, rows: str, by_loop: bool = False):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(ROWS, INPUTS, generator=g)
        y = x @ torch.randn(INPUTS, 1, generator=g) + torch.randn(ROWS, 1, generator=g)
        problem = regression(x, y, B)
        self.rng = Streams(0)
        self.batch = problem.train.part(torch.arange(B), ROWS / B)
        self.method = component("inference", "aadm", rows=rows, **METHOD)
        model = component("model", "mlp", **NETWORK).build(problem, self.rng)
        self.state = self.method.init(model, problem, self.rng)
        self.by_loop = by_loop

    def __call__(self) -> Tensor:
        """Take a step; return the objective."""
        if self.by_loop:
            return step_by_loop(self.method, self.state, self.batch, self.rng)
        self.state, info = self.method.step(self.state, self.batch, self.rng)
        return info["objective"]


def assert_equal() -> None:
    """Assert that five steps equal the steps of the loop, and that for one row separate draws equal
    shared ones.
    """
    ours = Steps(50, "shared")
    loop = Steps(50, "shared", by_loop=True)
    values = [[step() for _ in range(5)][-1] for step in (ours, loop)]
    torch.testing.assert_close(*values, rtol=1e-4, atol=1e-2)
    states = [step.state.q.body.state_dict() for step in (ours, loop)]
    torch.testing.assert_close(*states, rtol=1e-3, atol=1e-4)
    values = [Steps(1, rows)() for rows in ("shared", "own")]
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-2)


def measure(options: Namespace, report: Report) -> None:
    assert_equal()
    for B in (10, 50):
        ours = Steps(B, "shared")
        for peer, step in zip(PEERS, (Steps(B, "shared", True), Steps(B, "own")), strict=True):
            case = f"{peer}, B = {B}"
            ways = {"ours": repeat_way(ours, options.steps), case: repeat_way(step, options.steps)}
            report.race(case, ways, options.blocks)
