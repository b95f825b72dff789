"""Times what particles do to each other: Stein's direction against its broadcast form, and its cost
against K.

    python -m scripts.bench_repulsion             # K = 100, P = 10,000; and the table up to K = 1,000; one JSON line

The broadcast form writes the sums over pairs of particles as they are printed, with [K, K, P]
tensors; the project's has products of [K, K] with [K, P] alone.  Both get the same particles and
gradients and are asserted to agree.  Timings are interleaved, seconds of the process's own CPU with
one thread.  The table is of the repulsive drift and the noise that goes with it (SGLD+R: kernel,
Cholesky factor, one draw), to which a sampler adds the gradient of its model."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor

from components.inference.sgmcmc.repulsion import Interaction, kernel
from runner.execution.memory import keep_freed_memory

GOALS = {"K=100, P=10,000": 10.0}  # least ratio of the peer's time to ours
PARTICLES = [10, 20, 50, 100, 200, 500, 1000]
DIMENSIONS = [751, 10_000]  # 751: a network of 13-50-1


def direction(theta: Tensor, gradient: Tensor, h: float) -> Tensor:
    """φ_i = (1/K) Σ_l [k(z_l, z_i) ∇log p(z_l) + ∇_{z_l} k(z_l, z_i)], by matrix products."""
    particles = Interaction(theta, *kernel(theta, h))
    return particles.average(gradient) + particles.correction()


def broadcast(theta: Tensor, gradient: Tensor, h: float) -> Tensor:
    """The same, pair by pair."""
    difference = theta.unsqueeze(1) - theta  # z_i − z_l [K, K, P]
    k = torch.exp(-difference.square().sum(-1) / h).unsqueeze(-1)  # [K, K, 1]
    return (k * gradient + (2 / h) * k * difference).mean(1)


def drift_and_noise(theta: Tensor, gradient: Tensor, generator: torch.Generator) -> Tensor:
    """One SGLD+R update but for the gradient, median heuristic included."""
    particles = Interaction(theta, *kernel(theta, "median"))
    noise, _ = particles.noise(generator, 1e-6)
    return particles.average(gradient) + particles.correction() + noise


def clocked(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e3


def quantile(values: list[float], q: float) -> float:
    return float(torch.tensor(values, dtype=torch.float64).quantile(q))


def compare(K: int, P: int, repeats: int, dtype: torch.dtype) -> dict[str, float]:
    """Median times of both and the ratios of neighbouring ones."""
    generator = torch.Generator().manual_seed(0)
    theta, gradient = (torch.randn(K, P, generator=generator, dtype=dtype) for _ in range(2))
    # the median heuristic's value for standard normal particles
    h = 2.0 * P / float(torch.tensor(K).log())
    mine, theirs = direction(theta, gradient, h), broadcast(theta, gradient, h)
    difference = float((mine - theirs).norm() / theirs.norm())
    assert difference < (1e-10 if dtype == torch.float64 else 1e-4), (
        f"directions differ by {difference:.1e}"
    )
    times = []
    for repeat in range(repeats + 1):
        pair = (
            clocked(lambda: direction(theta, gradient, h)),
            clocked(lambda: broadcast(theta, gradient, h)),
        )
        if repeat:  # the first is a warm-up
            times.append(pair)
    ratios = [b / a for a, b in times]
    facts = {
        "ratio": quantile(ratios, 0.5),
        "ratio_q1": quantile(ratios, 0.25),
        "ratio_q3": quantile(ratios, 0.75),
    }
    ours_ms, peer_ms = (quantile([t[i] for t in times], 0.5) for i in (0, 1))
    return facts | {"ours_ms": ours_ms, "peer_ms": peer_ms, "difference": difference}


def growth(repeats: int, dtype: torch.dtype) -> dict[str, dict[int, float]]:
    """Median milliseconds of drift and noise for each P and K."""
    table: dict[str, dict[int, float]] = {}
    for P in DIMENSIONS:
        row = table[f"P={P:,}"] = {}
        for K in PARTICLES:
            generator = torch.Generator().manual_seed(0)
            theta, gradient = (
                torch.randn(K, P, generator=generator, dtype=dtype) for _ in range(2)
            )
            times = [
                clocked(lambda: drift_and_noise(theta, gradient, generator))  # noqa: B023
                for _ in range(repeats + 1)
            ]
            row[K] = quantile(times[1:], 0.5)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=9, help="timed rounds of each")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float32")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    dtype = getattr(torch, arguments.dtype)
    r = compare(100, 10_000, arguments.repeats, dtype)
    print(
        f"K = 100, P = 10,000   ours {r['ours_ms']:.1f} ms   broadcast {r['peer_ms']:.1f} ms   ratio {r['ratio']:.1f} "
        f"(quartiles {r['ratio_q1']:.1f}, {r['ratio_q3']:.1f})   directions within {r['difference']:.0e}"
    )
    table = growth(arguments.repeats, dtype)
    print(f"{'drift and noise, ms':22s}" + "".join(f"{f'K={K:,}':>10s}" for K in PARTICLES))
    for name, row in table.items():
        print(f"{name:22s}" + "".join(f"{ms:10.2f}" for ms in row.values()))
    ratios = {"K=100, P=10,000": [r["ratio"], r["ratio_q1"], r["ratio_q3"]]}
    report = {
        "benchmark": "repulsion",
        "peer": "broadcast [K, K, P]",
        "ratios": ratios,
        "goals": GOALS,
    }
    print(json.dumps(report | {"dtype": arguments.dtype, "milliseconds": table}))


if __name__ == "__main__":
    main()
