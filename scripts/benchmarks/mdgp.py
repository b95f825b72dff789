"""One training step of mMDGP against the same model from GPyTorch's DeepGP classes.

    python -m scripts.benchmarks mdgp --table      # also: time per step against B, M, T and S

B = 500, M = 100, 10 + 7 inner processes, D = 21, T = 7.  Both models get the same parameters, noise
and padded rows of each task; their bounds and gradients must be equal.  A step is the bound, its
gradient and fused Adam.  The peer's layout is found once, outside the clock."""

from __future__ import annotations

import time
from argparse import Namespace

import gpytorch
import torch
from torch import Tensor

from components.models.deep_gp.layout import Layout
from scripts.benchmarks.deep_gp_steps import Sizes, build_mdgp, build_ours, build_steps
from scripts.benchmarks.harness import Report
from scripts.peers.gpytorch_mdgp import JITTER, Peer, gradient_difference


def compare(S: int, repeats: int, dtype: torch.dtype, report: Report) -> None:
    ours, batch = build_mdgp(Sizes(S=S), dtype, JITTER)
    layout = Layout.of(batch.mask, dtype)
    noise = ours.sample_layer_noise(batch.x, layout, S, torch.Generator().manual_seed(1))
    peer = Peer(ours)
    generator = torch.Generator().manual_seed(2)

    def bound() -> Tensor:
        return peer.elbo(batch, ours.sample_layer_noise(batch.x, layout, S, generator))

    with (
        gpytorch.settings.variational_cholesky_jitter(JITTER, JITTER, JITTER),
        gpytorch.settings.num_likelihood_samples(S),
    ):
        difference = gradient_difference(ours, peer, batch, noise)
        most = 1e-5 if dtype == torch.float64 else 0.05
        assert difference < most, f"gradients differ by {difference:.1e}"
        ways = {"ours": build_ours(ours, batch, S, generator), "GPyTorch": build_steps(bound, peer)}
        report.race(f"S={S}", ways, repeats, warmups=3, clock=time.perf_counter)


def time_table(repeats: int, dtype: torch.dtype, report: Report) -> None:
    """Time per step with one of B, M, T and S changed."""
    values = {"B": (100, 250, 500, 1000, 2000), "M": (25, 50, 100, 200), "T": (1, 3, 7, 14)}
    values["S"] = (1, 5, 10, 20)
    for name, value in [(name, v) for name, numbers in values.items() for v in numbers]:
        sizes = Sizes(**{name: value})
        model, batch = build_mdgp(sizes, dtype, JITTER)
        step = build_ours(model, batch, sizes.S, torch.Generator().manual_seed(0))
        ways = {f"{name} = {value}": step}
        report.time(ways, repeats, warmups=2, clock=time.perf_counter)


def measure(options: Namespace, report: Report) -> None:
    dtype = getattr(torch, options.dtype)
    for S in options.samples:
        compare(S, options.repeats, dtype, report)
    if options.table:
        time_table(max(5, options.repeats // 3), dtype, report)
    report.facts |= {"dtype": options.dtype}
