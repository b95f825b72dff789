"""``make test-gpu``: a small run of every family on device=cuda, in float64 and float32, compared
with the same run on the CPU.

Both use the random numbers of the CPU and compute the same up to rounding, which float32 amplifies,
and which can change a draw in steps that accept, resample or choose an action. Every component also
makes a run with random numbers of the GPU.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from contract.partners import runs_of
from device.devices import (
    compare_devices,
    compare_exports,
    draw_strictly,
    every_experiment,
    every_run,
    score,
    short_run,
)
from gpu.cpu_noise import CpuGenerator, CpuNoise, CpuStreams
from support.runs.exported_families import FAMILIES

from components import registry
from components.maths.compiled import loops
from runner.execution import course
from runner.python.export import restored

HERE = torch.cuda.is_available()
NONE = "no GPU was found (torch.cuda.is_available() is False): nothing was compared with the CPU"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not HERE, reason=NONE),
    pytest.mark.filterwarnings("ignore"),
]
EVERY = every_run() if HERE else {"none": None}
EXPERIMENTS = every_experiment() if HERE else {"none": []}
METHODS = (
    {str(run) for name in registry.names("inference") for run in runs_of("inference", name)}
    if HERE
    else {"none"}
)
# Every component in float64, inference methods also in float32.
CASES = [
    (name, dtype)
    for name in sorted(EVERY)
    for dtype in ("float64", "float32")
    if dtype == "float64" or name in METHODS
]
CLOSE = {"float64": 1e-6, "float32": 1e-2}  # relative tolerance for values of order 1
LOOSE = {
    "float64": {"rhat": 0.25},  # ranks: rounding orders draws at equal distance from their median
    "float32": {
        "rhat": 0.25,
        "flat_share": 0.1,  # rates of a few rows
        "neighbour_error": 0.1,
        "coverage90": 0.1,
        "weight_ess": 0.1,  # tails of importance weights
        "pareto_k": 0.2,
        "log_slope_sd": 0.1,  # slopes near 0
        "cost": 0.1,  # a search that stops at rounding error
    },
}
DTYPES = {family: "float32" for family, keys in FAMILIES.items() if "dtype=float32" in keys}
UNSTEADY = {
    # the candidates of an email are the first among words with equal odds, in any order
    "acra": 1e-2,
    # starts at its maximum, where rounding determines the signs of Adam's steps
    "ppca-vi": 1e-2,
    # p(x|y) from five draws along directions of nearly equal curvature, which rounding rotates
    "cvae_vis": 0.1,
    # Bernoulli draws in float32 near their probability
    "vargrad_dvae_variance": 0.2,
    "vargrad_dvae_delta": 0.2,
}


@pytest.mark.parametrize(("family", "dtype"), CASES)
def test_gpu_run_matches_cpu(make_job, monkeypatch, family, dtype):
    use_cpu_numbers(monkeypatch)
    EVERY[family].skip_without_packages()
    keys = [*short_run(family, EVERY[family].overrides), f"dtype={dtype}"]
    compare(make_job, keys, lambda name: tolerance(family, name, dtype))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_gpu_experiment_matches_cpu(make_job, monkeypatch, name):
    use_cpu_numbers(monkeypatch)
    compare(make_job, EXPERIMENTS[name], lambda score: tolerance(name, score, "float32"))


@pytest.mark.parametrize("family", sorted(EVERY))
def test_run_draws_on_gpu(make_job, monkeypatch, family):
    EVERY[family].skip_without_packages()
    draw_on_gpu(make_job, monkeypatch, short_run(family, EVERY[family].overrides))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_draws_on_gpu(make_job, monkeypatch, name):
    draw_on_gpu(make_job, monkeypatch, EXPERIMENTS[name])


def draw_on_gpu(make_job, monkeypatch, keys: list[str]) -> None:
    """Run with random numbers of the GPU; the run finishes or is rejected with one line."""
    draw_strictly(monkeypatch)
    scores = score(make_job, *keys, "device=cuda")
    if isinstance(scores, str):  # six steps are too many for some games
        pytest.skip(scores)


@pytest.mark.parametrize("family", FAMILIES)
def test_exported_gpu_model_predicts_like_cpu(tmp_path, monkeypatch, family):
    use_cpu_numbers(monkeypatch)
    with CpuNoise():
        compare_exports(tmp_path, family, "cuda", CLOSE[DTYPES.get(family, "float64")])


def use_cpu_numbers(monkeypatch) -> None:
    """Use the CPU's random numbers of torch on both devices, and write no figures."""
    for module in (course, restored):
        monkeypatch.setattr(module, "Streams", CpuStreams)
    monkeypatch.setattr(torch, "Generator", CpuGenerator)
    # compiled loops draw other numbers than torch, on the CPU only
    monkeypatch.setattr(loops, "is_on_cpu", lambda _: False)
    draw_strictly(monkeypatch)


def compare(make_job, keys: list[str], tolerance: Callable[[str], float]) -> None:
    with CpuNoise():
        compare_devices(make_job, "cuda", keys, tolerance)


def tolerance(family: str, name: str, dtype: str) -> float:
    """Largest difference of one score of a family, relative and absolute."""
    unsteady = [tolerance for part, tolerance in UNSTEADY.items() if part in family]
    return max(CLOSE[dtype], LOOSE[dtype].get(name.split("/")[0], 0.0), *unsteady)
