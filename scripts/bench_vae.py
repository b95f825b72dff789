"""One step of a variational auto-encoder against Pyro's SVI.

    python -m scripts.bench_vae                  # 784-200-200-10, 100 rows, one draw of each, one JSON line
    python -m scripts.bench_vae --repeats 100

Ours are whole steps of ``inference=vi`` with the reparameterised gradient and KL in closed form.
Pyro: ``SVI`` with ``TraceMeanField_ELBO``, the same bound with the same closed form, and
``Trace_ELBO``, which draws log q too; Pyro's own Adam, validation on as Pyro has it.  All share the
networks of one module.

Before a time is printed, means of −ELBO and of gradients, projected on a fixed direction, are
asserted to be the same within four standard errors.  Steps are interleaved, seconds are of the
process's own CPU, on one thread; a ratio is the median of those of neighbouring steps."""

from __future__ import annotations

import argparse
import json
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor

from components.contracts.problems import Rows
from components.models.latent.vae import AutoEncoder
from components.problems.unlabelled import Unlabelled
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.bench_dvae import Way, clocked, component, quantiles
from scripts.peers.installed import peer_imports

PYRO = "Pyro TraceMeanField_ELBO"
GOALS = {PYRO: 1.3}  # least ratio of the peer's time to ours
PIXELS, ROWS, INK = 784, 100, 0.13
LR = 1e-6  # small: all ways share the parameters


def ours(module: AutoEncoder, problem: Unlabelled) -> Way:
    """Steps of ``inference=vi``."""
    batch, rng = Rows(problem.train.x, 1.0), Streams(1)
    gradient = component("gradient", "reparam", n_samples=1)
    vi = component("inference", "vi", gradient=gradient, lr=LR)
    state = vi.init(module, problem, rng)

    def estimate() -> float:
        gradients, terms, _ = gradient.estimate(module, batch, rng, None)
        for parameter, g in zip(module.parameters(), gradients, strict=True):
            parameter.grad = -g
        return -float(terms["elbo"]) / ROWS

    return Way(lambda: vi.step(state, batch, rng), estimate)


def pyro_ways(module: AutoEncoder, x: Tensor) -> dict[str, Way]:
    """Pyro's bounds of the same model and guide."""
    with peer_imports(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyro
        from pyro import distributions as laws
        from pyro.infer import SVI, Trace_ELBO, TraceMeanField_ELBO
        from pyro.optim import Adam

    def model(x: Tensor) -> None:
        pyro.module("up", module.generative)
        with pyro.plate("rows", ROWS):
            z = pyro.sample(
                "z", laws.Normal(x.new_zeros(ROWS, 10), x.new_ones(ROWS, 10)).to_event(1)
            )
            pyro.sample("x", laws.Bernoulli(logits=module.generative.network(z)).to_event(1), obs=x)

    def guide(x: Tensor) -> None:
        pyro.module("down", module.guide)
        with pyro.plate("rows", ROWS):
            pyro.sample("z", laws.Normal(*module.guide(x)).to_event(1))

    def way(bound: object) -> Way:
        svi = SVI(model, guide, Adam({"lr": LR}), bound)

        def estimate() -> float:
            module.zero_grad()
            return float(svi.loss_and_grads(model, guide, x)) / ROWS

        return Way(lambda: svi.step(x), estimate)

    return {PYRO: way(TraceMeanField_ELBO()), "Pyro Trace_ELBO": way(Trace_ELBO())}


def checked(module: AutoEncoder, ways: dict[str, Way], draws: int) -> None:
    """Asserts that all ways have the mean −ELBO and the mean gradient of the first, the latter
    along its own direction."""
    parameters = list(module.parameters())

    def gradient() -> Tensor:
        return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]) / ROWS

    first = next(iter(ways.values()))
    towards = torch.zeros(sum(p.numel() for p in parameters))
    for _ in range(30):
        first.estimate()
        towards += gradient()
    direction = torch.nn.functional.normalize(towards, dim=0)
    estimates = {}
    for name, way in ways.items():
        values = torch.tensor(
            [[way.estimate(), float(gradient() @ direction)] for _ in range(draws)],
            dtype=torch.float64,
        )
        estimates[name] = values.mean(0), values.std(0) / draws**0.5
        print(
            f"{name:40s} "
            + "  ".join(f"{m:9.3f} ± {e:.3f}" for m, e in zip(*estimates[name], strict=True))
        )
    mean, error = next(iter(estimates.values()))
    for name, (other, std_error) in estimates.items():
        z = (other - mean).abs() / (error.square() + std_error.square()).sqrt().clamp_min(1e-12)
        assert float(z.max()) < 4, f"{name}: not the same mean, |z| {z.tolist()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=60, help="timed steps of each")
    parser.add_argument(
        "--draws", type=int, default=100, help="estimates behind the means that are compared"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    rng = Streams(0)
    torch.manual_seed(0)
    x = torch.bernoulli(torch.full((ROWS, PIXELS), INK), generator=rng.data)
    problem = Unlabelled("bench", "binary", Rows(x, 1.0), Rows(x, 1.0), None)
    module = component("model", "vae", widths=[200, 200], guide="separate", scale="softplus").build(
        problem, rng
    )
    ways = {"ours": ours(module, problem)}
    ways |= pyro_ways(module, x)
    print("mean −ELBO of a row, gradient along one direction:")
    checked(module, ways, arguments.draws)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(arguments.repeats + 10):
        for name, way in ways.items():
            milliseconds = clocked(way.step)
            if repeat >= 10:
                times[name].append(milliseconds)
    ratios = {}
    for name, values in times.items():
        ratios[name] = quantiles([b / a for a, b in zip(times["ours"], values, strict=True)])
        print(f"{name:40s} {quantiles(values)[0]:8.2f} ms   ratio {ratios[name][0]:.2f}")
    del ratios["ours"]
    print(json.dumps({"benchmark": "vae", "peer": "Pyro 1.9", "ratios": ratios, "goals": GOALS}))


if __name__ == "__main__":
    main()
