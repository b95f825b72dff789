"""Effective draws per second of HMC and NUTS on logistic regression (N = 1,000, d = 25), against
BlackJAX's.

    python -m scripts.bench_hmc                     # 100 chains, both precisions, one JSON line
    python -m scripts.bench_hmc --chains 64 --dtype float32

The score is min-ESS/s: the least effective sample size over the means and the second moments of all
coordinates, divided by the seconds that the draws took; warm-up and compilation are not timed.  All
run the same number of chains in one batch, with a dense mass matrix and the target acceptance that
are the YAML's or the package's defaults; BlackJAX's kernels are mapped over the chains, scanned
over the draws and compiled.  Its HMC has no rule for the number of leapfrog steps: all of ``STEPS``
are tried and the best by its own min-ESS/s is the peer.  Means and second moments of all samplers
are asserted to agree within their Monte-Carlo errors before a number is printed.  Runs of each
sampler are interleaved; seconds are of the process's own CPU, on one core, so that what else the
machine does falls out.  The ratio is the median of those of runs next to each other."""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
import torch
import yaml
from arviz_stats.base import array_stats
from torch import Tensor

import conf
from components import registry
from components.contracts.problems import Batch
from components.contracts.traces import Trace
from components.inference.log_joint import log_joint
from components.problems.supervised import Supervised
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

with peer_imports():
    import blackjax
    import jax
    import jax.numpy as jnp

N, INPUTS = 1000, 24  # and an intercept: d = 25
STEPS = (2, 3, 4, 6)  # leapfrog steps that BlackJAX's HMC is tried with
WARMUP = 1000
PAIRS = {
    "HMC against its HMC": "HMC",
    "HMC against its NUTS": "HMC",
    "ChEES against its HMC": "ChEES",
    "NUTS against its NUTS": "NUTS",
}
GOALS = {f"{case}, {dtype}": 1.5 for case in list(PAIRS)[:2] for dtype in ("float64", "float32")}
GOALS |= {"NUTS against its NUTS, float64": 2.0, "NUTS against its NUTS, float32": 1.0}
Sampler = Callable[[int], Tensor]  # number of draws -> draws [C, n, P], going on from the last


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    folder = os.path.dirname(str(conf.__file__))
    with open(os.path.join(folder, role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


def data(dtype: torch.dtype) -> Supervised:
    """Correlated inputs (0.5^|i − j|) and labels drawn from a logistic regression."""
    g = torch.Generator().manual_seed(0)
    distance = (torch.arange(INPUTS)[:, None] - torch.arange(INPUTS)).abs()
    factor = torch.linalg.cholesky(0.5 ** distance.double())
    x = torch.randn(N, INPUTS, generator=g, dtype=torch.float64) @ factor.T
    beta = 0.5 * torch.randn(INPUTS, generator=g, dtype=torch.float64)
    y = torch.rand(N, generator=g, dtype=torch.float64) < torch.sigmoid(x @ beta - 0.5)
    batch = Batch(x.to(dtype), y.long()[:, None], torch.ones(N, 1, dtype=torch.bool), 1.0)
    return Supervised("bench", "binary", batch, batch, None, n_classes=2, task_names=["y"])


def ours(name: str, problem: Supervised, chains: int, **keys: Any) -> Sampler:
    """Our sampler after its warm-up."""
    rng, batch = Streams(1), problem.train
    inference = component(
        "inference", name, chains=chains, warmup=WARMUP, thinning=1, mass="dense", **keys
    )
    model = component("model", "logistic_regression", prior_scale=1.0, intercept_scale=1.0).build(
        problem, rng
    )
    state = inference.init(model, problem, rng)
    for _ in range(WARMUP):
        state, _ = inference.step(state, batch, rng)

    def more(n: int) -> Tensor:
        nonlocal state
        state = replace(state, kept=Trace(), stats=defaultdict(Trace))
        for _ in range(n):
            state, _ = inference.step(state, batch, rng)
        return inference.posterior(state).draws

    return more


def log_density(problem: Supervised) -> Callable[[Any], Any]:
    """The same log joint, up to a constant, as one writes it for JAX."""
    x = np.concatenate([np.ones((N, 1)), problem.train.x.numpy()], 1)
    signed = jnp.asarray(
        (x * (2 * problem.train.y.numpy() - 1)).astype(problem.train.x.numpy().dtype)
    )

    def log_joint(beta: Any) -> Any:
        return jax.nn.log_sigmoid(signed @ beta).sum() - 0.5 * (beta**2).sum()

    return log_joint


def theirs(name: str, problem: Supervised, chains: int, **keys: Any) -> Sampler:
    """BlackJAX's sampler after its window adaptation (one chain, as it is made) and a burn-in of
    all chains."""
    target, key = log_density(problem), jax.random.key(1)
    algorithm = getattr(blackjax, name)
    start = jnp.zeros(INPUTS + 1, dtype=problem.train.x.numpy().dtype)
    warmup = blackjax.window_adaptation(algorithm, target, is_mass_matrix_diagonal=False, **keys)
    (state, parameters), _ = warmup.run(key, start, num_steps=WARMUP)
    kernel = jax.vmap(algorithm(target, **parameters).step)

    @jax.jit
    def scan(key: Any, states: Any, keys: Any) -> Any:
        def one(states: Any, key: Any) -> Any:
            states, _ = kernel(jax.random.split(key, chains), states)
            return states, states.position

        return jax.lax.scan(one, states, keys)

    states = jax.vmap(lambda _: state)(jnp.arange(chains))

    def more(n: int) -> Tensor:
        nonlocal states, key
        key, now = jax.random.split(key)
        states, positions = scan(now, states, jax.random.split(now, n))
        return torch.from_numpy(np.array(jax.block_until_ready(positions))).transpose(0, 1)

    return more


def effective(draws: Tensor) -> float:
    """Least ESS over the means and the second moments of the coordinates; draws [C, n, P]."""
    both = torch.cat([draws, draws.square()], -1).double().numpy()
    return float(array_stats.ess(both, chain_axis=0, draw_axis=1, method="mean").min())


@dataclass
class Runs:
    """What the timed runs of one sampler gave."""

    seconds: list[float]
    ess: list[float]
    moments: list[Tensor]  # of each run and chain, [C, 2P]

    @property
    def speed(self) -> Tensor:
        return torch.tensor(self.ess, dtype=torch.float64) / torch.tensor(
            self.seconds, dtype=torch.float64
        )


def timed(samplers: dict[str, Sampler], draws: int, repeats: int) -> dict[str, Runs]:
    """Interleaved runs; each is first run once, untimed (which compiles)."""
    runs = {name: Runs([], [], []) for name in samplers}
    for sampler in samplers.values():
        sampler(draws)
    for _ in range(repeats):
        for name, sampler in samplers.items():
            start = time.process_time()
            samples = sampler(draws)
            runs[name].seconds.append(time.process_time() - start)
            runs[name].ess.append(effective(samples))
            runs[name].moments.append(torch.cat([samples, samples.square()], -1).double().mean(1))
    return runs


def agree(runs: dict[str, Runs]) -> float:
    """Largest |z| of the difference between two samplers' moments; the chains' own means give the
    errors."""
    # [C, 2P]: chains are independent
    means = {name: torch.stack(r.moments).mean(0) for name, r in runs.items()}
    worst, names = 0.0, list(means)
    for i, a in enumerate(names):
        for b in names[:i]:
            error = (means[a].var(0) / len(means[a]) + means[b].var(0) / len(means[b])).sqrt()
            worst = max(worst, float(((means[a].mean(0) - means[b].mean(0)) / error).abs().max()))
    return worst


def same_density(problem: Supervised) -> float:
    """Largest difference between the two log joints' differences from point to point."""
    rng = Streams(3)
    model = component("model", "logistic_regression", prior_scale=1.0, intercept_scale=1.0).build(
        problem, rng
    )
    theta = 0.3 * model.sample_prior(20, rng.init)
    a = log_joint(model, theta, problem.train)
    b = torch.from_numpy(np.array(jax.vmap(log_density(problem))(jnp.asarray(theta.numpy()))))
    return float(((a - a[0]) - (b - b[0])).abs().max())


def compare(precision: str, chains: int, draws: int, repeats: int) -> dict[str, Any]:
    """Ours against BlackJAX in one precision."""
    jax.config.update("jax_enable_x64", precision == "float64")
    problem = data(getattr(torch, precision))
    difference = same_density(problem)
    assert difference < (1e-8 if precision == "float64" else 0.05), (
        f"log densities differ by {difference:.1e}"
    )
    samplers: dict[str, Sampler] = {
        "ours HMC": ours("hmc", problem, chains, trajectory="fixed", length=math.pi / 2),
        "ours ChEES": ours("hmc", problem, chains, trajectory="chees"),
        "ours NUTS": ours("nuts", problem, chains),
        "BlackJAX NUTS": theirs("nuts", problem, chains),
    }
    samplers |= {
        f"BlackJAX HMC, {n} steps": theirs("hmc", problem, chains, num_integration_steps=n)
        for n in STEPS
    }
    runs = timed(samplers, draws, repeats)
    z = agree(runs)
    assert z < 5, f"{precision}: moments of two samplers differ by {z:.1f} standard errors"
    best = max(
        (n for n in runs if n.startswith("BlackJAX HMC")),
        key=lambda n: float(runs[n].speed.median()),
    )
    peers = {case: best if case.endswith("HMC") else "BlackJAX NUTS" for case in PAIRS}
    return {
        "precision": precision,
        "largest_z": z,
        "peer_hmc": best,
        "min_ess_per_second": {name: float(r.speed.median()) for name, r in runs.items()},
        "ess_per_draw": {
            name: float(np.median(r.ess)) / (chains * draws) for name, r in runs.items()
        },
        "milliseconds_per_draw": {
            name: float(np.median(r.seconds)) / draws * 1e3 for name, r in runs.items()
        },
        "ratios": {
            f"{case}, {precision}": [
                float((runs[f"ours {mine}"].speed / runs[peers[case]].speed).quantile(q))
                for q in (0.5, 0.25, 0.75)
            ]
            for case, mine in PAIRS.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--draws", type=int, default=100, help="draws of each chain in a timed run")
    parser.add_argument("--repeats", type=int, default=9, help="timed runs of each sampler")
    parser.add_argument(
        "--dtype", choices=["float64", "float32"], nargs="*", default=["float64", "float32"]
    )
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    keep_freed_memory()
    results, ratios = [], {}
    for precision in arguments.dtype:
        comparison = compare(precision, arguments.chains, arguments.draws, arguments.repeats)
        print(
            f"{precision}, {arguments.chains} chains; moments agree within {comparison['largest_z']:.1f} standard errors"
        )
        for name, speed in comparison["min_ess_per_second"].items():
            ms, per_draw = (
                comparison["milliseconds_per_draw"][name],
                comparison["ess_per_draw"][name],
            )
            print(
                f"  {name:24s} {speed:10,.0f} min-ESS/s   {ms:6.2f} ms a draw of all chains   ESS {per_draw:.2f} a draw"
            )
        results.append(comparison)
        ratios |= comparison["ratios"]
    line = {
        "benchmark": "hmc",
        "peer": f"BlackJAX {blackjax.__version__}",
        "ratios": ratios,
        "goals": GOALS,
    }
    print(json.dumps(line | {"chains": arguments.chains, "results": results}))


if __name__ == "__main__":
    main()
