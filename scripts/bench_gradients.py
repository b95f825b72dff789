"""Times gradients row by row of the deep GP against one backward pass for each row.

    python -m scripts.bench_gradients                  # B = 10 and B = 100, one JSON line

The peer is what Boustati (2021), section 4.3.2, prices the partial-gradients objective at: the
bound of all rows recorded once, then a reverse pass for each row, |B| of them.  Both find the
gradients of all rows, that of KL and the value of the bound at the same noise, and are asserted
equal first.  Timings are interleaved and are seconds of the process's own CPU, one thread, so that
what else the machine does falls out; the ratio is the median of those of neighbouring repeats."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml
from torch import Tensor

import conf
from components import registry
from components.contracts.problems import Batch
from components.gradients.by_parameter import flat
from components.gradients.pathwise.bound import row_gradients
from components.models.deep_gp.dgp import TwoLayers
from components.problems.supervised import Supervised
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams

GOALS = {"B=10": 1.5, "B=100": 15.0}  # least ratio of the peer's time to ours
ROWS, INPUTS = 1503, 5  # airfoil; Boustati B.2.2
WARM = 5  # repeats that are not counted

Found = tuple[Tensor, Tensor]  # ĝ_b [B, P] and the gradient of the bound [P]


def built(B: int) -> tuple[TwoLayers, Batch, Tensor]:
    """The model as its YAML has it, B rows and their noise."""
    rng = Streams(0)
    x = torch.randn(ROWS, INPUTS, generator=rng.data, dtype=torch.float64)
    y = torch.randn(ROWS, 1, generator=rng.data, dtype=torch.float64)
    train = Batch(x, y, torch.ones(ROWS, 1, dtype=torch.bool), 1.0)
    problem = Supervised("bench", "real", train, train, B)
    with open(os.path.join(os.path.dirname(str(conf.__file__)), "model", "dgp.yaml")) as file:
        module = (
            registry.get("model", "dgp").model_validate(yaml.safe_load(file)).build(problem, rng)
        )
    with torch.no_grad():
        for p in module.parameters():  # somewhere that q has been led to
            p += 0.1 * torch.randn(p.shape, generator=rng.init, dtype=p.dtype)
    batch = next(iter(problem.batches("minibatch", rng, 0, 1)))[1]
    return module, batch, module.draw_noise(batch, 1, rng.noise)


def ours(module: TwoLayers, batch: Batch, noise: Tensor) -> Found:
    rows, gradients, _ = row_gradients(module, batch, noise)
    return rows, flat(gradients, list(module.parameters()))


def backward_passes(module: TwoLayers, batch: Batch, noise: Tensor) -> Found:
    parameters = list(module.parameters())
    values = batch.scale * module.elbo_rows(batch, noise).mean(0)  # [B]

    def pass_of(value: Tensor) -> Tensor:
        return torch.cat(
            [g.flatten() for g in torch.autograd.grad(value, parameters, retain_graph=True)]
        )

    rows = torch.stack([pass_of(value) for value in values])
    return rows, rows.sum(0) - pass_of(module.kl())


def clocked(step: Callable[[], Any]) -> float:
    start = time.process_time()
    step()
    return (time.process_time() - start) * 1e3


def quantile(values: list[float], q: float) -> float:
    return float(torch.tensor(values, dtype=torch.float64).quantile(q))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=100, help="timed repeats of each")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    ratios = {}
    for B in (10, 100):
        parts = built(B)
        for one, other in zip(ours(*parts), backward_passes(*parts), strict=True):
            difference = float((one - other).norm() / other.norm())
            assert difference < 1e-9, f"B = {B}: gradients differ by {difference:.1e}"
        times = [
            (clocked(lambda p=parts: ours(*p)), clocked(lambda p=parts: backward_passes(*p)))
            for _ in range(WARM + arguments.repeats)
        ][WARM:]
        ratios[f"B={B}"] = [
            quantile([theirs / mine for mine, theirs in times], q) for q in (0.5, 0.25, 0.75)
        ]
        mine, theirs = (quantile([pair[k] for pair in times], 0.5) for k in range(2))
        print(f"B = {B:3d}   ours {mine:7.2f} ms   {B} backward passes {theirs:7.2f} ms   ratio {ratios[f'B={B}'][0]:.2f} "
              f"(quartiles {ratios[f'B={B}'][1]:.2f}, {ratios[f'B={B}'][2]:.2f})")  # fmt: skip
    print(
        json.dumps(
            {
                "benchmark": "gradients",
                "peer": "|B| backward passes",
                "ratios": ratios,
                "goals": GOALS,
            }
        )
    )


if __name__ == "__main__":
    main()
