"""Times one training step of the project's mMDGP against the same model assembled from GPflux's
layers, on TensorFlow.

    python -m scripts.bench_mdgp_gpflux                       # S = 1 and 10, float64 and float32, one JSON line
    python -m scripts.bench_mdgp_gpflux --samples 1 --dtypes float64 --rounds 30

GPflux has an environment of its own (make bench-peers), and runs in a process of its own, on one
thread (scripts/peers/gpflux_mdgp.py, which says how the model is written).  It is given the rows,
the parameters, the inducing inputs and the noise of one evaluation; its bound and the gradients of
all that is learnt are asserted equal to ours before anything is timed.  Then both take steps of
their own, on new noise: the bound, its gradient and a fused Adam.  Ours finds the layout of the
batch at every step, as in training; GPflux's rows of each task are constants of its graph.  The two
take turns; seconds are of each process's own CPU, so that what else the machine does falls on
neither; a ratio is the median of those of the rounds."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.module import DGPNoise, MultiTaskDGP
from runner.execution.memory import keep_freed_memory
from scripts.bench_mdgp import built, quantile, relative, trainer
from scripts.peers.installed import own_interpreter
from scripts.peers.process import PeerProcess

B, M, P, T, D = (
    500,
    100,
    10,
    7,
    21,
)  # rows, inducing inputs, shared processes, tasks (each with a process of its own), inputs
STEPS = 3  # in a round
# Jitter is ours of σ² and GPflux's of 1, equal here, but not in its gradient: as small as the precision lets it be.
JITTER = {"float64": 1e-8, "float32": 1e-6}
# relative differences of bounds and of gradients
WITHIN = {"float64": (1e-9, 1e-6), "float32": (1e-5, 1e-3)}
# least ratio of GPflux's time to ours
GOALS = {f"S={S}, {dtype}": 1.3 for S in (1, 10) for dtype in JITTER}


def learnt(layer: GPLayer) -> dict[str, Tensor]:
    """What GPflux is given of a layer, by its name there."""
    return {
        "Z": layer.inducing,
        "lengthscale": layer.log_lengthscale.exp(),
        "variance": layer.log_variance.exp(),
        "q_mean": layer.q_mean.squeeze(1),
        "q_tril": layer.q_tril.squeeze(1),
    }


def named(ours: MultiTaskDGP) -> dict[str, GPLayer]:
    return {name.split()[0]: layer for name, layer in ours.layers().items()}


def model(ours: MultiTaskDGP, batch: Batch, noise: DGPNoise) -> dict[str, np.ndarray]:
    """Everything that GPflux's process needs to know."""
    layout, (shared, specific) = noise.layout, noise.levels[0]
    assert layout.weight is not None
    assert shared is not None
    assert specific is not None
    inputs = {
        "x": batch.x,
        "y": batch.y[batch.mask],
        "task": batch.mask.long().argmax(1),
        "tasks": T,
        "samples": len(shared),
        "scale": batch.scale,
        "jitter": ours.top.layer.jitter,
        "noise_variance": ours.likelihood.noise_variance,
        "noise.shared": shared,
    }
    inputs |= {f"noise.{t}": specific[:, t, layout.weight[t] > 0] for t in range(T)}
    inputs |= {
        f"{name}.{key}": value
        for name, layer in named(ours).items()
        for key, value in learnt(layer).items()
    }
    return {
        key: value.detach().numpy() if isinstance(value, Tensor) else np.array(value)
        for key, value in inputs.items()
    }


def differences(
    ours: MultiTaskDGP, batch: Batch, noise: DGPNoise, found: dict[str, Tensor]
) -> tuple[float, float]:
    """Relative difference of the bounds, and the largest of the gradients, parameter by
    parameter."""
    terms = ours.elbo(batch, noise)
    terms["elbo"].backward()
    worst = 0.0
    for name, layer in named(ours).items():
        gradients = {
            "Z": layer.inducing.grad,
            "lengthscale": layer.log_lengthscale.grad / layer.log_lengthscale.exp(),
            "variance": layer.log_variance.grad / layer.log_variance.exp(),
            "q_mean": layer.q_mean.grad.squeeze(1),
            "q_tril": layer.q_tril.grad.squeeze(1),
        }
        worst = max(worst, *(relative(g, found[f"{name}.{key}"]) for key, g in gradients.items()))
    raw = ours.likelihood.raw_noise
    worst = max(worst, relative(raw.grad / torch.sigmoid(raw), found["noise_variance"]))
    bounds = [relative(terms[key], found[peer]) for key, peer in (("elbo", "bound"), ("kl", "kl"))]
    return max(bounds), worst


def compare(S: int, dtype: str, rounds: int, interpreter: Path) -> list[float]:
    """The ratio and its quartiles; milliseconds are printed."""
    kind = getattr(torch, dtype)
    ours, batch = built(B, M, P, T, D, kind, JITTER[dtype])
    generator = torch.Generator().manual_seed(1)
    noise = ours.sample_layer_noise(batch.x, Layout.of(batch.mask, kind), S, generator)
    script = Path(__file__).parent / "peers" / "gpflux_mdgp.py"
    with tempfile.TemporaryDirectory() as folder:
        model_path, gradients_path = Path(folder, "model.npz"), Path(folder, "gradients.npz")
        np.savez(model_path, **model(ours, batch, noise))
        with PeerProcess(interpreter, script, str(model_path)) as peer:
            peer.ask(f"differentiate {gradients_path}")
            with np.load(gradients_path) as file:
                gradients = {key: torch.from_numpy(value) for key, value in file.items()}
            bound, gradient = differences(ours, batch, noise, gradients)
            allowed = WITHIN[dtype]
            assert bound < allowed[0], f"bounds differ by {bound:.1e}"
            assert gradient < allowed[1], f"gradients differ by {gradient:.1e}"
            step = trainer(
                lambda: ours.elbo(batch, ours.draw_noise(batch, S, generator))["elbo"], ours
            )

            def mine() -> float:
                start = time.process_time()
                for _ in range(STEPS):
                    step()
                return time.process_time() - start

            mine(), peer.ask(f"step {STEPS}")  # the first step of GPflux traces its graph
            times = [(mine(), float(peer.ask(f"step {STEPS}"))) for _ in range(rounds)]
    ms = [quantile([pair[i] for pair in times], 0.5) / STEPS * 1e3 for i in (0, 1)]
    ratio = [quantile([b / a for a, b in times], q) for q in (0.5, 0.25, 0.75)]
    print(
        f"S = {S:2d}, {dtype}   ours {ms[0]:6.1f} ms   GPflux {ms[1]:6.1f} ms   ratio {ratio[0]:.2f} "
        f"(quartiles {ratio[1]:.2f}, {ratio[2]:.2f})   bound within {bound:.0e}, gradients within {gradient:.0e}",
        flush=True,
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--samples", type=int, nargs="*", default=[1, 10], help="values of S")
    parser.add_argument("--dtypes", nargs="*", choices=list(JITTER), default=list(JITTER))
    parser.add_argument("--rounds", type=int, default=20, help=f"of {STEPS} steps of each")
    arguments = parser.parse_args()
    interpreter = own_interpreter("GPflux")
    torch.set_num_threads(1)
    keep_freed_memory()
    ratios = {
        f"S={S}, {dtype}": compare(S, dtype, arguments.rounds, interpreter)
        for dtype in arguments.dtypes
        for S in arguments.samples
    }
    print(
        json.dumps({"benchmark": "mdgp_gpflux", "peer": "GPflux", "ratios": ratios, "goals": GOALS})
    )


if __name__ == "__main__":
    main()
