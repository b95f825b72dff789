"""Benchmark of SGLD chains on networks."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from components.contracts.problems import Batch
from components.models.networks.feed_forward import FeedForward
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, Way
from scripts.benchmarks.workloads import component, noise_regression
from scripts.peers.installed import AbsentPeer, peer_imports

# Boston housing; Gallego 2.3.3
INPUTS = 13
UNITS = 50
ROWS = 455
BATCH = 100
NOISE = 1.0
STEP_SIZE = 1e-6
LOOP = "loop over modules"


def build_modules(network: FeedForward, theta: Tensor) -> list[nn.Module]:
    """A torch module for each particle."""
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


def flatten(parameters: dict[str, Tensor]) -> Tensor:
    """θ [K, P] from a dict of stacked parameters, in our order."""
    return torch.cat(
        [parameters[name].flatten(1) for name in ("0.weight", "0.bias", "2.weight", "2.bias")], 1
    )


def build_log_posterior(
    module: nn.Module,
) -> Callable[[dict[str, Tensor], Batch], tuple[Tensor, Tensor]]:
    """log p(θ) + N/B Σ log p(y|x, θ) of one module's parameters, up to a constant, in the form
    required by ``posteriors``."""

    def log_posterior(parameters: dict[str, Tensor], batch: Batch) -> tuple[Tensor, Tensor]:
        f = functional_call(module, parameters, (batch.x,))
        log_likelihood = -0.5 / NOISE * (batch.y - f).square().sum()
        log_prior = -0.5 * sum(p.square().sum() for p in parameters.values())
        return log_prior + batch.scale * log_likelihood, torch.empty(0)

    return log_posterior


def build_posteriors_steps(
    network: FeedForward, theta: Tensor, batch: Batch
) -> dict[str, tuple[Callable[[], Any], Tensor]]:
    """Two ways to run parallel chains with ``posteriors``, each as a step and its drift
    (temperature 0)."""
    with peer_imports(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from posteriors.sgmcmc import sgld

    stacked = build_modules(network, theta)
    start = {k: v.detach() for k, v in stack_module_state(stacked)[0].items()}
    log_posterior = build_log_posterior(stacked[0])

    def of_all(parameters: dict[str, Tensor], batch: Batch) -> tuple[Tensor, Tensor]:
        values, aux = torch.vmap(lambda p: log_posterior(p, batch))(parameters)
        return values.sum(), aux

    def gradient_of_all(temperature: float) -> Callable[[Any], Any]:
        method = sgld.build(of_all, STEP_SIZE, temperature=temperature)
        return lambda parameters: method.update(method.init(parameters), batch)[0].params

    def update_of_each(temperature: float) -> Callable[[Any], Any]:
        method = sgld.build(log_posterior, STEP_SIZE, temperature=temperature)
        return torch.vmap(
            lambda p: method.update(method.init(p), batch)[0].params, randomness="different"
        )

    steps = {}
    for name, way in (
        ("vmap of the log posterior", gradient_of_all),
        ("vmap of the update", update_of_each),
    ):
        drift = flatten(way(0.0)(start)) - theta
        steps[name] = (partial(way(1.0), start), drift)
    return steps


def build_loop(
    network: FeedForward, theta: Tensor, batch: Batch
) -> tuple[Callable[[], None], Tensor]:
    """Python loop over K modules, each with its own backward pass and in-place update."""
    all_modules = build_modules(network, theta)
    scale = batch.scale

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
    drift = flatten(stack_module_state(all_modules)[0]).detach() - theta
    return step, drift


def build_ours(network: Any, problem: Any, theta: Tensor, batch: Any) -> tuple[Way, Tensor]:
    """Our step and its drift, the change of θ without noise."""
    keys = {"chains": len(theta), "step_size": STEP_SIZE, "burn_in": 10**9}
    sgld = component("inference", "sgld", **keys)
    rng = Streams(0)
    state = replace(sgld.init(network, problem, rng), theta=theta)
    noise_state = rng.noise.get_state()

    def step() -> None:
        nonlocal state
        state, _ = sgld.step(state, batch, rng)

    step()
    change = state.theta - theta
    rng.noise.set_state(noise_state)
    noise = torch.randn(theta.shape, generator=rng.noise, dtype=theta.dtype)
    return step, change - (2 * STEP_SIZE) ** 0.5 * noise


def measure(options: Namespace, report: Report) -> None:
    """SGLD on K networks of 13-50-1 against ``posteriors`` and a Python loop over modules.

        python -m scripts.benchmarks sgld --dtype float64

    ``posteriors`` (Normal Computing) maps its log posterior or its complete update over the chains with
    ``torch.vmap``; the faster of the two is the peer.  All use the same particles, batch and model and
    must have the same drift.  Each peer is timed separately against ours, because the loop scatters
    thousands of small tensors over the heap, which slows later computations."""
    dtype = getattr(torch, options.dtype)
    rng = Streams(0)
    problem, batch = noise_regression(ROWS, INPUTS, BATCH, rng, dtype)
    network = component("model", "mlp", widths=[UNITS], noise=NOISE).build(problem, rng)
    theta = network.sample_prior(options.particles, rng.init)
    step, drift = build_ours(network, problem, theta, batch)
    peers = {}
    with suppress(AbsentPeer):
        peers |= build_posteriors_steps(network, theta, batch)
    peers[LOOP] = build_loop(network, theta, batch)
    within = 1e-9 if dtype == torch.float64 else 1e-3
    for name, (_, peer_drift) in peers.items():
        report.assert_close(f"{name}: drifts", drift, peer_drift, within)
    ratios = {}
    for name, (peer_step, _) in peers.items():
        repeats = -(-options.repeats // 3) if name == LOOP else options.repeats
        seconds = report.time({"ours": step, name: peer_step}, repeats, warmups=10)
        ratios[name] = seconds[name] / seconds["ours"]
    report.record(LOOP, ratios.pop(LOOP))
    if ratios:
        report.record("posteriors", min(ratios.values(), key=np.median))
    report.facts |= {"dtype": options.dtype, "particles": options.particles}
