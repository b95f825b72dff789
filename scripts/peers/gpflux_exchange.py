"""Exchange with the process of GPflux: parameters of our mMDGP, requests, comparison of gradients."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.module import DGPNoise, MultiTaskDGP
from scripts.benchmarks.harness import largest_difference

SCRIPT = Path(__file__).with_name("gpflux_mdgp.py")


@contextmanager
def open_peer(interpreter: Path, inputs: Path) -> Iterator[Callable[[str], str]]:
    """Context with the process: a function from a request to its reply, one line each."""
    command = [interpreter, "-W", "ignore", SCRIPT, inputs]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:

        def ask(request: str) -> str:
            with suppress(BrokenPipeError):
                print(request, file=process.stdin, flush=True)
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise SystemExit(f"the peer's process ended with exit code {process.wait()}")
            return line

        yield ask


def layer_parameters(layer: GPLayer) -> dict[str, Tensor]:
    """Parameters of a layer by GPflux's names."""
    return {
        "Z": layer.inducing,
        "lengthscale": layer.log_lengthscale.exp(),
        "variance": layer.log_variance.exp(),
        "q_mean": layer.q_mean.squeeze(1),
        "q_tril": layer.q_tril.squeeze(1),
    }


def name_layers(ours: MultiTaskDGP) -> dict[str, GPLayer]:
    return {name.split()[0]: layer for name, layer in ours.layers().items()}


def build_inputs(ours: MultiTaskDGP, batch: Batch, noise: DGPNoise) -> dict[str, np.ndarray]:
    """Data, parameters and noise for GPflux."""
    layout, (shared, specific) = noise.layout, noise.levels[0]
    assert layout.weight is not None
    assert shared is not None
    assert specific is not None
    inputs = {
        "x": batch.x,
        "y": batch.y[batch.mask],
        "task": batch.mask.long().argmax(1),
        "tasks": ours.n_tasks,
        "samples": len(shared),
        "scale": batch.scale,
        "jitter": ours.top.layer.jitter,
        "noise_variance": ours.likelihood.noise_variance,
        "noise.shared": shared,
    }
    inputs |= {f"noise.{t}": specific[:, t, layout.weight[t] > 0] for t in range(ours.n_tasks)}
    inputs |= {
        f"{name}.{key}": value
        for name, layer in name_layers(ours).items()
        for key, value in layer_parameters(layer).items()
    }
    return {
        key: value.detach().numpy() if isinstance(value, Tensor) else np.array(value)
        for key, value in inputs.items()
    }


def natural_gradients(layer: GPLayer) -> dict[str, Tensor]:
    """Gradients in GPflux's parameters, where lengthscales and variances are not logarithms."""
    return {
        "Z": layer.inducing.grad,
        "lengthscale": layer.log_lengthscale.grad / layer.log_lengthscale.exp(),
        "variance": layer.log_variance.grad / layer.log_variance.exp(),
        "q_mean": layer.q_mean.grad.squeeze(1),
        "q_tril": layer.q_tril.grad.squeeze(1),
    }


def differences(
    ours: MultiTaskDGP, batch: Batch, noise: DGPNoise, theirs: dict[str, Tensor]
) -> tuple[float, float]:
    """Relative difference of the bounds, and the largest relative difference of gradients over
    parameters."""
    terms = ours.elbo(batch, noise)
    terms["elbo"].backward()
    raw = ours.likelihood.raw_noise
    gradients = {"noise_variance": raw.grad / torch.sigmoid(raw)}
    for name, layer in name_layers(ours).items():
        gradients |= {f"{name}.{key}": g for key, g in natural_gradients(layer).items()}
    worst = max(largest_difference(g, theirs[name]) for name, g in gradients.items())
    bounds = {"bound": terms["elbo"], "kl": terms["kl"]}
    return max(largest_difference(b, theirs[name]) for name, b in bounds.items()), worst
