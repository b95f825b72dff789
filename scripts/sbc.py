"""Simulation-based calibration of ``vis`` and ``aadm`` on a regression whose posterior is known:
reported, not a gate.

    python scripts/sbc.py --to docs/results                 # all rows, 60 data sets each: about half an hour of one core
    python scripts/sbc.py --to elsewhere --data-sets 20 --only "exact posterior;VI, diagonal"

θ* ~ N(0, I), y = X θ* + N(0, I), a posterior is fitted to (X, y), and the rank of what θ* is among
99 independent draws of it: of each coordinate, and of log p(θ, y), which depends on the data.  If
the posterior is right ranks are uniform on 0 … 99 (Talts et al. 2018, Theorem 1): too narrow a
posterior has ranks at both ends, too wide a one in the middle, a shifted one on one side.  Exact
draws are the control.  Each data set has its own inputs, correlated so that a diagonal q cannot be
right."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
import yaml
from scipy.stats import chisquare, kstest
from torch import Tensor

from components import registry
from components.contracts.problems import Batch
from components.problems.supervised import Supervised
from runner.disk import conf_folders
from runner.execution.rng import Streams

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROWS, INPUTS, CORRELATION, DRAWS, BINS = 20, 2, 0.8, 99, 10
P = INPUTS + 1  # with an intercept
Fit = Callable[[Supervised, int], Tensor]  # data, seed -> draws [99, P]


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    path = conf_folders.find(role, name)
    assert path is not None
    return registry.get(role, name).model_validate(
        yaml.safe_load(path.read_text(encoding="utf-8")) | keys
    )


def simulated(seed: int) -> tuple[Supervised, Tensor]:
    """A data set and the θ* [P] it was drawn from."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(ROWS, INPUTS, generator=g, dtype=torch.float64)
    x = CORRELATION**0.5 * z[:, :1] + (1 - CORRELATION) ** 0.5 * z
    theta = torch.randn(P, generator=g, dtype=torch.float64)
    y = x @ theta[:-1, None] + theta[-1] + torch.randn(ROWS, 1, generator=g, dtype=torch.float64)
    rows = Batch(x, y, torch.ones(ROWS, 1, dtype=torch.bool), 1.0)
    return Supervised("conjugate", "real", rows, rows, None), theta


def design(problem: Supervised) -> Tensor:
    return torch.cat([problem.train.x, torch.ones(ROWS, 1, dtype=torch.float64)], 1)  # [N, P]


def exact(problem: Supervised, seed: int) -> Tensor:
    """Draws of N(Λ⁻¹ Xᵀ y, Λ⁻¹), Λ = I + Xᵀ X."""
    X = design(problem)
    precision = torch.eye(P, dtype=torch.float64) + X.T @ X
    mean = torch.linalg.solve(precision, X.T @ problem.train.y[:, 0])
    root = torch.linalg.cholesky(torch.linalg.inv(precision))
    noise = torch.randn(
        DRAWS, P, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return mean + noise @ root.T


def fitted(name: str, steps: int, **keys: Any) -> Fit:
    """Draws of what an inference makes of a linear network with known noise and prior."""

    def fit(problem: Supervised, seed: int) -> Tensor:
        rng = Streams(seed)
        inference = component("inference", name, **keys)
        network = component("model", "mlp", widths=[], noise=1.0, prior_std=1.0).build(problem, rng)
        state = inference.init(network, problem, rng)
        for _, batch in problem.batches(inference.requires.batch_kind, rng, 0, steps):
            state, _ = inference.step(state, batch, rng)
        if name == "aadm":
            with torch.no_grad():
                return state.q.draw(DRAWS, rng.evaluation)
        draws = inference.posterior(state).flat
        return draws[torch.randperm(len(draws), generator=rng.evaluation)[:DRAWS]]

    return fit


def vis(**keys: Any) -> Fit:
    return fitted("vis", 300, **({"n_samples": 10, "lr": 0.03, "draws": 100, "eta": 0.005} | keys))


def aadm(**keys: Any) -> Fit:
    """Fifty times the published rate of q, ten times that of T, and a small generator: three
    weights."""
    small = {"generator_widths": [20], "discriminator_widths": [20], "noise_dim": 10}
    return fitted("aadm", 1000, **small, n_samples=20, lr=0.005, discriminator_lr=0.01, **keys)


FITS: dict[str, Fit] = {
    "exact posterior": exact,
    "VI, diagonal": vis(refine_steps=0),
    "VI, full covariance": vis(refine_steps=0, covariance="full"),
    "VIS-P 3, SGLD": vis(refine_steps=3),
    "VIS-P 3, SGLD, full covariance": vis(refine_steps=3, covariance="full"),
    "VIS-0-100, SGLD": vis(refine_steps=0, infer_steps=100),
    "VIS-J 3, full covariance": vis(
        refine_steps=3, kernel="sgd", entropy="jacobian", covariance="full"
    ),
    "VIS-P 3, SGD": vis(refine_steps=3, kernel="sgd"),
    "VIS-P 3, SVGD": vis(refine_steps=3, kernel="svgd"),
    "AADM α = 1e-4": aadm(alpha=1e-4),
    "AADM α = 0.5": aadm(alpha=0.5),
    "AADM α = 1": aadm(alpha=1.0),
    "AADM α = 1, discriminator none": aadm(alpha=1.0, discriminator="none"),
}


def log_joint(theta: Tensor, problem: Supervised) -> Tensor:
    """log p(θ, y) up to a constant, [..., P] -> [...]."""
    residual = problem.train.y[:, 0] - theta @ design(problem).T
    return -0.5 * (residual.square().sum(-1) + theta.square().sum(-1))


def ranks(fit: Fit, data_sets: int) -> np.ndarray:
    """Of each coordinate and of the log joint, [R, P + 1], in 0 … 99."""
    rows = []
    for seed in range(data_sets):
        problem, theta = simulated(seed)
        draws = fit(problem, 10_000 + seed)
        statistics = torch.cat([draws, log_joint(draws, problem)[:, None]], 1)
        rows.append(
            (statistics < torch.cat([theta, log_joint(theta, problem)[None]])).sum(0).numpy()
        )
    return np.stack(rows)


def summary(rank: np.ndarray) -> dict[str, float]:
    """Of ranks [R]: p of uniformity over ten bins and by Kolmogorov and Smirnov, spread over that
    of uniform ranks, and how many lie in the middle 90 of 100."""
    counts = np.bincount(rank * BINS // (DRAWS + 1), minlength=BINS)
    u = (rank + 0.5) / (DRAWS + 1)
    return {
        "chi2_p": float(chisquare(counts).pvalue),
        "ks_p": float(kstest(u, "uniform").pvalue),
        "spread": float(np.sqrt(np.mean((u - 0.5) ** 2) * 12)),
        "coverage90": float(np.mean((rank >= 5) & (rank < 95))),
    }


def load_ranks(file: Path, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Ranks that an earlier call left in the file, or new ones, which are left there."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, compute())
    return np.load(file)


def kept(name: str, data_sets: int, folder: Path) -> np.ndarray:
    """Ranks of a row."""
    return load_ranks(folder / f"{name} {data_sets}.npy", lambda: ranks(FITS[name], data_sets))


def line(name: str, found: np.ndarray) -> str:
    """A row of the table, of ranks [R, P + 1]."""
    coordinates, joint = [summary(found[:, i]) for i in range(P)], summary(found[:, P])
    worst = min(1.0, P * min(c["chi2_p"] for c in coordinates))  # of three coordinates, Bonferroni
    spread, coverage = (
        float(np.mean([c[key] for c in coordinates])) for key in ("spread", "coverage90")
    )
    cells = [f"{v:.3f}" for v in (worst, joint["chi2_p"], joint["ks_p"], spread, coverage)]
    return f"| {name} | {' | '.join(cells)} |"


def parse_options(
    description: str | None, name: str, files: str, rows: Iterable[str], count: tuple[str, int]
) -> argparse.Namespace:
    """Options of a script of ranks; ``count`` is the flag for how many data sets, and its default."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, required=True, help=f"folder of {files}")
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path(f"outputs/{name}"),
        help="folder of ranks: rows that are there are done",
    )
    parser.add_argument(
        count[0], type=int, default=count[1], help="R, simulated and fitted by every row"
    )
    parser.add_argument("--only", default=";".join(rows), help="rows, with semicolons between them")
    return parser.parse_args()


def main() -> None:
    options = parse_options(__doc__, "sbc", "sbc.md and sbc.png", FITS, ("--data-sets", 60))
    torch.set_num_threads(1)
    names = options.only.split(";")
    columns = [
        "posterior",
        "p (χ²): θ",
        "p (χ²): log joint",
        "p (KS): log joint",
        "spread: θ",
        "coverage of 90 %: θ",
    ]
    lines = [f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    figure, axes = plt.subplots(
        len(names), 2, figsize=(7, 0.9 * len(names)), squeeze=False, layout="constrained"
    )
    for row, name in zip(axes, names, strict=True):
        rank_table = kept(name, options.data_sets, options.kept)
        lines.append(line(name, rank_table))
        print(lines[-1], flush=True)
        for axis, values, times in (
            (row[0], rank_table[:, :P].ravel(), P),
            (row[1], rank_table[:, P], 1),
        ):
            axis.hist(values, bins=np.linspace(0, DRAWS + 1, BINS + 1), color="0.6")
            axis.axhline(times * options.data_sets / BINS, color="black", linewidth=0.8)
            axis.set_yticks([])
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    axes[0][0].set_title("ranks of coordinates of θ", fontsize=9)
    axes[0][1].set_title("ranks of log p(θ, y)", fontsize=9)
    options.to.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.to / "sbc.png", dpi=120)
    caption = (
        f"{options.data_sets} data sets of {ROWS} rows, {DRAWS} draws of each posterior; χ² of ten bins, of θ the smallest p "
        "of three coordinates times three. Uniform ranks have spread 1; above it a posterior is too narrow, below too wide."
    )
    page = [
        "# Simulation-based calibration",
        str(__doc__).splitlines()[0],
        caption,
        "\n".join(lines),
        "![ranks](sbc.png)",
    ]
    (options.to / "sbc.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
