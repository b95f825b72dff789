"""One training step of mMDGP against the same model from GPflux's layers, on TensorFlow.

    python -m scripts.benchmarks mdgp_gpflux --samples 1 --dtypes float64 --rounds 30

GPflux has an environment of its own (make bench-peers) and a process of its own, on one thread
(scripts/peers/gpflux_mdgp.py).  It gets the rows, the parameters, the inducing inputs and the noise
of one evaluation; its bound and gradients must equal ours.  Then both take steps on new noise: the
bound, its gradient and a fused Adam.  Seconds are of each process's own CPU.

Why no ratio of 2 in float64: on one core of an AMD EPYC (45 to 50 GFlop/s) products of matrices,
Cholesky factors and inverses take 19 of 29 ms of our step at S = 1 and 28 of 43 ms at S = 10, blocks
of zeros left out.  Half of GPflux's 49 and 71 ms would leave 5 and 7 ms for kernels, sums, noise,
Adam and the graph, which take 10 and 15 ms."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from itertools import product
from pathlib import Path

import numpy as np
import torch

from components.models.deep_gp.layout import Layout
from scripts.benchmarks.deep_gp_steps import Sizes, build_mdgp, build_ours
from scripts.benchmarks.harness import Measured, Report, repeated
from scripts.peers import process
from scripts.peers.gpflux_exchange import build_inputs, differences
from scripts.peers.installed import own_interpreter

STEPS = 3  # in a round
# Jitter is of σ² here, of 1 in GPflux: equal, but not in its gradient; as small as precision
# allows.
JITTER = {"float64": 1e-8, "float32": 1e-6}
# relative differences of bounds and of gradients
WITHIN = {"float64": (1e-9, 1e-6), "float32": (1e-5, 1e-3)}


def compare(S: int, dtype: str, rounds: int, interpreter: Path, report: Report) -> None:
    kind = getattr(torch, dtype)
    ours, batch = build_mdgp(Sizes(S=S), kind, JITTER[dtype])
    generator = torch.Generator().manual_seed(1)
    noise = ours.sample_layer_noise(batch.x, Layout.of(batch.mask, kind), S, generator)
    script = Path(process.__file__).parent / "gpflux_mdgp.py"
    with tempfile.TemporaryDirectory() as folder:
        inputs, gradients_path = Path(folder, "model.npz"), Path(folder, "gradients.npz")
        np.savez(inputs, **build_inputs(ours, batch, noise))
        with process.PeerProcess(interpreter, script, str(inputs)) as peer:
            peer.ask(f"differentiate {gradients_path}")
            with np.load(gradients_path) as file:
                gradients = {key: torch.from_numpy(value) for key, value in file.items()}
            found = differences(ours, batch, noise, gradients)
            assert max(np.divide(found, WITHIN[dtype])) < 1, f"bound and gradients: {found}"
            ways = {
                "ours": repeated(build_ours(ours, batch, S, generator), STEPS),
                "GPflux": lambda: Measured(peer.ask(f"step {STEPS}")),
            }
            report.race(f"S={S}, {dtype}", ways, rounds)


def measure(options: Namespace, report: Report) -> None:
    interpreter = own_interpreter("GPflux")
    for dtype, S in product(options.dtypes, options.samples):
        compare(S, dtype, options.rounds, interpreter, report)
