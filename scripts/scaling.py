"""``python -m scripts.scaling``: how the time of a step grows with the size of a problem, for
docs/scaling.md.

Each line doubles one size three times.  Processor time of a step is the smallest of several, for
other work on the machine only adds to it.  The exponent is log₂ of the last doubling; it is below
the algorithm's while fixed work of a step (its operations, one by one) is not yet small, and the
size from which it is half of a step is the floor: t = a + b nᵖ through the first and the last size
with the algorithm's p."""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from scripts.device_steps import Step, make_step

WARM = 2  # steps before the first that is timed
LEAST, MOST = 5, 40  # steps that are timed, as many as fit into SECONDS
SECONDS = 4.0


class Line(NamedTuple):
    """One size of a family that is doubled."""

    family: str
    size: str  # its letter and name
    key: str  # with {n} where it goes
    sizes: tuple[int, ...]
    power: float  # of the algorithm
    overrides: list[str]
    first: bool = False  # only a first step is like the others


def doubled(first: int) -> tuple[int, ...]:
    return tuple(first * 2**k for k in range(4))


NETWORK = ["dataset=linear_simulation", "dataset.n_train=1000", "model=mlp"]
DENSITY = ["dataset=gaussian", "model=target_density"]
TOY = ["dataset=multitask_toy", "dataset.asymmetric=false"]
GROWTH = ["dataset=nonlinear_growth", "model=nonlinear_growth", "inference=bootstrap_filter"]
WIENER = ["dataset=wiener_velocity", "model=lgssm"]
IGP = ["dataset=linear_simulation", "model=igp"]
SERIES = ["model=structural", "inference=structural_gibbs", "inference.chains=4"]
BARS = ["dataset=bars", "model=lda"]
LINES = [
    Line("exact Gaussian process (igp, lbfgs)", "N rows", "dataset.n_train={n}", doubled(250), 3,
         [*IGP, "inference=lbfgs"], first=True),
    Line("sparse Gaussian process (igp, dsvi)", "M inducing inputs", "model.n_inducing={n}",
         doubled(50), 3, [*IGP, "model.posterior=sparse", "inference=dsvi", "dataset.n_train=1000"]),
    Line("deep Gaussian process (dgp, dsvi)", "N rows", "dataset.n_train={n}", doubled(500), 1,
         ["dataset=linear_simulation", "model=dgp", "inference=dsvi"]),
    Line("multi-task deep process (mmdgp, dsvi)", "N rows", "dataset.n_train={n}", doubled(100), 1,
         [*TOY, "model=mmdgp", "inference=dsvi"]),
    Line("network (mlp, map)", "N rows of a step", "dataset.n_train={n}", doubled(1000), 1,
         ["dataset=linear_simulation", "model=mlp", "inference=map"]),
    Line("chains of networks (mlp, sgld)", "K chains", "inference.chains={n}", doubled(10), 1,
         [*NETWORK, "inference=sgld"]),
    Line("chains of networks (mlp, sgld)", "units of a layer", "model.widths=[{n},{n}]",
         doubled(32), 2, [*NETWORK, "inference=sgld", "inference.chains=10"]),
    Line("particles that repel (svgd)", "L particles", "inference.chains={n}", doubled(100), 2,
         [*DENSITY, "inference=svgd", "dataset.dim=10"]),
    Line("Hamiltonian Monte Carlo (hmc)", "C chains", "inference.chains={n}", doubled(64), 1,
         [*DENSITY, "inference=hmc", "dataset.dim=50"]),
    Line("Gaussian VI, full covariance", "P coordinates", "dataset.dim={n}", doubled(100), 2,
         [*DENSITY, "inference=gaussian_vi"]),
    Line("adversarial divergences (aadm)", "N rows of a step", "dataset.n_train={n}",
         doubled(250), 1, ["dataset=linear_simulation", "model=mlp", "inference=aadm"]),
    Line("particle filter (bootstrap)", "N particles", "inference.particles={n}", doubled(10000), 1,
         GROWTH),
    Line("particle filter (bootstrap)", "R replicates", "replicates={n}", doubled(10), 1,
         [*GROWTH, "inference.particles=2000"]),
    Line("Kalman filter", "R replicates", "replicates={n}", doubled(1000), 1,
         [*WIENER, "inference=kalman"]),
    Line("structural series (Gibbs, 4 chains)", "T weeks", "dataset.n_steps={n}", doubled(200), 1,
         ["dataset=dlm_sim", *SERIES, "model.blocks=[{name: local_linear_trend}]"]),
    Line("topics (collapsed Gibbs)", "documents", "dataset.n_train={n}", doubled(250), 1,
         [*BARS, "inference=lda_collapsed_gibbs"]),
    Line("topics (variational)", "documents", "dataset.n_train={n}", doubled(250), 1,
         [*BARS, "inference=lda_cavi"]),
    Line("Dirichlet process mixture (Gibbs)", "N rows", "dataset.n_train={n}", doubled(100), 1,
         ["dataset=mixture_sim", "model=dp_mixture", "inference=crp_gibbs"]),
    Line("players (q_learning)", "R seeds", "replicates={n}", doubled(250), 1,
         ["+experiment=friend_or_foe", "inference=q_learning"]),
]  # fmt: skip


def time_step(make: Callable[[], Step], first: bool) -> float:
    """The smallest processor time of a step, in milliseconds."""
    step = make()
    for _ in range(WARM):
        step()
    found: list[float] = []
    while len(found) < LEAST or (len(found) < MOST and sum(found) < SECONDS):
        if first:
            step = make()
        start = time.process_time()
        step()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def floor(line: Line, times: list[float]) -> float | None:
    """Size at which fixed work is half of a step: (a/b)^(1/p); None: it is not seen."""
    low, high = line.sizes[0] ** line.power, line.sizes[-1] ** line.power
    b = (times[-1] - times[0]) / (high - low)
    a = times[0] - b * low
    at = (a / b) ** (1 / line.power) if a > 0 and b > 0 else 0.0
    return at if at >= 1 else None


def measure(line: Line, folder: Path) -> str:
    """Row of the table: milliseconds at each size, exponent, the algorithm's, floor."""
    times = [
        time_step(
            partial(make_step, folder, "cpu", [*line.overrides, line.key.replace("{n}", str(n))]),
            line.first,
        )
        for n in line.sizes
    ]
    exponent = math.log2(times[-1] / times[-2])
    at = floor(line, times)
    shown = "  ".join(f"{ms:8.2f}" for ms in times)
    half = "–" if at is None else f"{at:,.0f}"
    first = f"{line.size}, {line.sizes[0]:,} to {line.sizes[-1]:,}"
    return f"{line.family:38}{first:36}{shown}  {exponent:6.2f}  {line.power:3g}  {half:>8}"


def main() -> None:
    """Prints the table, a line when it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="lines whose family or size has this word")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    heads = "".join(f"{head:>10}" for head in ("n", "2 n", "4 n", "8 n"))
    print(f"{'family':38}{'size':36}{heads}  {'last':>6}  {'alg':>3}  {'floor':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for line in LINES:
            if only in f"{line.family} {line.size}":
                print(measure(line, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
