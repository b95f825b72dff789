"""Interaction of particles: Stein's direction against its broadcast form.

The broadcast form computes the sums over pairs of particles literally, with [K, K, P] tensors; ours
uses products of [K, K] with [K, P]."""

from __future__ import annotations

import math
from argparse import Namespace
from functools import partial

import torch
from torch import Tensor

from components.maths.particles.interactions import Interaction, kernel
from scripts.benchmarks.harness import Report

# particles, parameters
K = 100
P = 10_000


def compute_direction(theta: Tensor, gradient: Tensor, h: float) -> Tensor:
    """φ_i = (1/K) Σ_l [k(z_l, z_i) ∇log p(z_l) + ∇_{z_l} k(z_l, z_i)], by matrix products."""
    particles = Interaction(theta, *kernel(theta, h))
    return particles.average(gradient) + particles.correction()


def compute_by_broadcast(theta: Tensor, gradient: Tensor, h: float) -> Tensor:
    """Stein's direction by broadcasting over pairs."""
    difference = theta.unsqueeze(1) - theta  # z_i − z_l [K, K, P]
    k = torch.exp(-difference.square().sum(-1) / h).unsqueeze(-1)  # [K, K, 1]
    return (k * gradient + (2 / h) * k * difference).mean(1)


def measure(options: Namespace, report: Report) -> None:
    g = torch.Generator().manual_seed(0)
    dtype = getattr(torch, options.dtype)
    theta, gradient = torch.randn(2, K, P, generator=g, dtype=dtype)
    h = 2.0 * P / math.log(K)  # the median heuristic for standard normal particles
    ways = {
        "ours": partial(compute_direction, theta, gradient, h),
        "broadcast": partial(compute_by_broadcast, theta, gradient, h),
    }
    within = 1e-10 if options.dtype == "float64" else 1e-4
    report.assert_close("directions", ways["ours"](), ways["broadcast"](), within)
    report.race("K=100, P=10,000", ways, options.repeats)
    report.facts |= {"dtype": options.dtype}
