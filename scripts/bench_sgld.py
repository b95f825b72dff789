"""Times SGLD on K networks of 13-50-1 at once against the package ``posteriors`` and against a
Python loop over modules.

    python -m scripts.bench_sgld                  # K = 100, B = 100, one JSON line
    python -m scripts.bench_sgld --dtype float64

``posteriors`` (Normal Computing) runs its chains with ``torch.vmap``: over the log posterior, with
one gradient for all chains, or over its whole update; the faster of the two is the peer.  All see
the same particles, batch and model (ReLU units, N(0, 1) priors, unit observation noise), and are
asserted to take the same step but for the noise.  A step leads from one state to the next.
Timings, of ours interleaved with one peer at a time, are seconds of the process's own CPU, one
thread, so that what else the machine does falls out; freed memory is kept by the process, as in
every run, which all gain by.  The ratio is the median of those of neighbouring steps."""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

import conf
from components import registry
from components.contracts.problems import Batch
from components.models.networks.feed_forward import FeedForward
from components.problems.supervised import Supervised
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

GOALS = {"posteriors": 2.0, "loop over modules": 6.0}  # least ratio of the peer's time to ours
# Boston housing; Gallego 2.3.3
INPUTS, UNITS, ROWS, BATCH, NOISE, STEP_SIZE = 13, 50, 455, 100, 1.0, 1e-6


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    folder = os.path.dirname(str(conf.__file__))
    with open(os.path.join(folder, role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


def built(K: int, dtype: torch.dtype) -> tuple[FeedForward, Supervised, Tensor, Batch]:
    """Our network, its problem, K particles drawn from the prior and a batch."""
    rng = Streams(0)
    x = torch.randn(ROWS, INPUTS, generator=rng.data, dtype=dtype)
    y = torch.randn(ROWS, 1, generator=rng.data, dtype=dtype)
    train = Batch(x, y, torch.ones(ROWS, 1, dtype=torch.bool), 1.0)
    problem = Supervised("bench", "real", train, train, BATCH)
    network = component("model", "mlp", widths=[UNITS], noise=NOISE).build(problem, rng)
    batch = next(iter(problem.batches("minibatch", rng, 0, 1)))[1]
    return network, problem, network.sample_prior(K, rng.init), batch


def modules(network: FeedForward, theta: Tensor) -> list[nn.Module]:
    """One ordinary module for each particle."""
    networks = []
    for particle in theta:
        module = nn.Sequential(nn.Linear(INPUTS, UNITS), nn.ReLU(), nn.Linear(UNITS, 1)).to(theta)
        with torch.no_grad():
            for linear, (weight, bias) in zip(
                (module[0], module[2]), network.layers(particle), strict=True
            ):
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
        networks.append(module)
    return networks


def flattened(parameters: dict[str, Tensor]) -> Tensor:
    """θ [K, P] from a dict of stacked parameters, in our order."""
    return torch.cat(
        [parameters[name].flatten(1) for name in ("0.weight", "0.bias", "2.weight", "2.bias")], 1
    )


def log_posterior_of(
    module: nn.Module,
) -> Callable[[dict[str, Tensor], Batch], tuple[Tensor, Tensor]]:
    """log p(θ) + N/B Σ log p(y|x, θ) of one module's parameters, up to a constant, as
    ``posteriors`` wants it."""

    def log_posterior(parameters: dict[str, Tensor], batch: Batch) -> tuple[Tensor, Tensor]:
        f = functional_call(module, parameters, (batch.x,))
        log_likelihood = -0.5 / NOISE * (batch.y - f).square().sum()
        log_prior = -0.5 * sum(p.square().sum() for p in parameters.values())
        return log_prior + batch.scale * log_likelihood, torch.empty(0)

    return log_posterior


def ours(
    network: FeedForward, problem: Supervised, theta: Tensor, batch: Batch
) -> tuple[Callable[[], Any], Tensor]:
    """Our step, and what it adds to θ but for the noise."""
    sgld = component("inference", "sgld", chains=len(theta), step_size=STEP_SIZE, burn_in=10**9)
    rng = Streams(0)
    slot = {"state": replace(sgld.init(network, problem, rng), theta=theta)}
    before = rng.noise.get_state()

    def step() -> None:
        slot["state"], _ = sgld.step(slot["state"], batch, rng)

    step()
    moved = slot["state"].theta - theta
    rng.noise.set_state(before)
    noise = torch.randn(theta.shape, generator=rng.noise, dtype=theta.dtype)
    return step, moved - (2 * STEP_SIZE) ** 0.5 * noise


def posteriors_steps(
    network: FeedForward, theta: Tensor, batch: Batch
) -> dict[str, tuple[Callable[[], Any], Tensor]]:
    """The two ways to run chains in parallel with ``posteriors``: each a step, and its drift
    (temperature 0)."""
    with peer_imports(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from posteriors.sgmcmc import sgld

    stacked = modules(network, theta)
    start = {k: v.detach() for k, v in stack_module_state(stacked)[0].items()}
    one = log_posterior_of(stacked[0])

    def of_all(parameters: dict[str, Tensor], batch: Batch) -> tuple[Tensor, Tensor]:
        values, aux = torch.vmap(lambda p: one(p, batch))(parameters)
        return values.sum(), aux

    def gradient_of_all(temperature: float) -> Callable[[Any], Any]:
        method = sgld.build(of_all, STEP_SIZE, temperature=temperature)
        return lambda parameters: method.update(method.init(parameters), batch)[0].params

    def update_of_each(temperature: float) -> Callable[[Any], Any]:
        method = sgld.build(one, STEP_SIZE, temperature=temperature)
        return torch.vmap(
            lambda p: method.update(method.init(p), batch)[0].params, randomness="different"
        )

    steps = {}
    for name, way in (
        ("vmap of the log posterior", gradient_of_all),
        ("vmap of the update", update_of_each),
    ):
        drift = flattened(way(0.0)(start)) - theta
        held = {"parameters": start}

        update = way(1.0)

        def step(held: dict[str, Any] = held, update: Callable[[Any], Any] = update) -> None:
            held["parameters"] = update(held["parameters"])

        steps[name] = (step, drift)
    return steps


def loop(network: FeedForward, theta: Tensor, batch: Batch) -> tuple[Callable[[], None], Tensor]:
    """A Python loop over K modules, each with its own backward pass and in-place update."""
    all_modules, scale = modules(network, theta), batch.scale

    def step(noise_scale: float = (2 * STEP_SIZE) ** 0.5) -> None:
        for module in all_modules:
            parameters = list(module.parameters())
            value = -0.5 * scale / NOISE * (batch.y - module(batch.x)).square().sum()
            value = value - 0.5 * sum(p.square().sum() for p in parameters)
            gradients = torch.autograd.grad(value, parameters)
            with torch.no_grad():
                for p, gradient in zip(parameters, gradients, strict=True):
                    p.add_(gradient, alpha=STEP_SIZE).add_(torch.randn_like(p), alpha=noise_scale)

    step(0.0)
    drift = flattened(stack_module_state(all_modules)[0]).detach() - theta
    return step, drift


def clocked(step: Callable[[], Any]) -> float:
    start = time.process_time()
    step()
    return (time.process_time() - start) * 1e3


def quantile(values: list[float], q: float) -> float:
    return float(torch.tensor(values, dtype=torch.float64).quantile(q))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--particles", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=150, help="timed steps of each")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float32")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    dtype = getattr(torch, arguments.dtype)
    network, problem, theta, batch = built(arguments.particles, dtype)
    mine, drift = ours(network, problem, theta, batch)
    peers = posteriors_steps(network, theta, batch)
    peers["loop over modules"] = loop(network, theta, batch)
    for name, (_, other) in peers.items():
        difference = float((other - drift).norm() / drift.norm())
        assert difference < (1e-9 if dtype == torch.float64 else 1e-3), (
            f"{name}: drifts differ by {difference:.1e}"
        )
        print(f"{name:28s} the same drift within {difference:.0e}")
    ratios = {}
    # each by itself: the loop scatters thousands of small tensors over the heap, which slows down what comes next
    for name, (step, _) in peers.items():
        repeats = (
            arguments.repeats // 3 if name == "loop over modules" else arguments.repeats
        )  # slow, and steady enough
        times = [(clocked(mine), clocked(step)) for _ in range(repeats + 10)][10:]
        pairs = [theirs / own for own, theirs in times]
        ratios[name] = [quantile(pairs, q) for q in (0.5, 0.25, 0.75)]
        our_ms, theirs = (quantile([pair[i] for pair in times], 0.5) for i in (0, 1))
        quartiles = "ratio {:.2f} (quartiles {:.2f}, {:.2f})".format(*ratios[name])
        print(f"{name:28s} {theirs:8.2f} ms, ours {our_ms:8.2f} ms   {quartiles}")
    ways = [name for name in peers if name.startswith("vmap")]
    peer_ratios = {
        "posteriors": min(ratios[w] for w in ways),
        "loop over modules": ratios["loop over modules"],
    }
    report = {
        "benchmark": "sgld",
        "peer": "posteriors 0.1; modules",
        "ratios": peer_ratios,
        "goals": GOALS,
    }
    print(json.dumps(report | {"dtype": arguments.dtype, "particles": arguments.particles}))


if __name__ == "__main__":
    main()
