"""Interaction of particles: Stein's direction against its broadcast form, and its cost against K.
The broadcast form writes the sums over pairs of particles as they are printed, with [K, K, P]
tensors; ours has products of [K, K] with [K, P].  The table is the repulsive drift and its noise
(SGLD+R: kernel, Cholesky factor, one draw), to which a sampler adds the gradient of its model."""

from __future__ import annotations

import math
from argparse import Namespace
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor

from components.inference.sgmcmc.repulsion import Interaction, kernel
from scripts.benchmarks.harness import Report

DIMENSIONS = (751, 10_000)  # 751: a network of 13-50-1


def compute_direction(theta: Tensor, gradient: Tensor, h: float) -> Tensor:
    """φ_i = (1/K) Σ_l [k(z_l, z_i) ∇log p(z_l) + ∇_{z_l} k(z_l, z_i)], by matrix products."""
    particles = Interaction(theta, *kernel(theta, h))
    return particles.average(gradient) + particles.correction()


def compute_by_broadcast(theta: Tensor, gradient: Tensor, h: float) -> Tensor:
    """The same, pair by pair."""
    difference = theta.unsqueeze(1) - theta  # z_i − z_l [K, K, P]
    k = torch.exp(-difference.square().sum(-1) / h).unsqueeze(-1)  # [K, K, 1]
    return (k * gradient + (2 / h) * k * difference).mean(1)


def compute_drift_and_noise(theta: Tensor, gradient: Tensor, generator: torch.Generator) -> Tensor:
    """One SGLD+R update but for the gradient, median heuristic included."""
    particles = Interaction(theta, *kernel(theta, "median"))
    noise, _ = particles.noise(generator, 1e-6)
    return particles.average(gradient) + particles.correction() + noise


def draw_particles(K: int, P: int, dtype: str) -> tuple[Tensor, Tensor, torch.Generator]:
    """Positions and gradients [K, P], and the generator after them."""
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(K, P, generator=generator, dtype=getattr(torch, dtype))
    return theta, torch.randn(K, P, generator=generator, dtype=theta.dtype), generator


def measure(options: Namespace, report: Report) -> None:
    theta, gradient, _ = draw_particles(100, 10_000, options.dtype)
    h = 2.0 * 10_000 / math.log(100)  # the median heuristic for standard normal particles
    ways = {
        "ours": lambda: compute_direction(theta, gradient, h),
        "broadcast": lambda: compute_by_broadcast(theta, gradient, h),
    }
    within = 1e-10 if options.dtype == "float64" else 1e-4
    report.assert_close("directions", ways["ours"](), ways["broadcast"](), within)
    report.race("K=100, P=10,000", ways, options.repeats)
    table = {}
    for P, K in product(DIMENSIONS, options.particles):
        case = f"drift and noise, K = {K:,}, P = {P:,}"
        step = partial(compute_drift_and_noise, *draw_particles(K, P, options.dtype))
        table[case] = 1e3 * float(np.median(report.time({case: step}, options.repeats)[case]))
    report.facts |= {"dtype": options.dtype, "milliseconds": table}
