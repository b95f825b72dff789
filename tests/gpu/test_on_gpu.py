"""``make test-gpu``: a small run of every family on device=cuda, in float64 and float32, beside the
same run on the CPU.

Both draw the random numbers of the CPU, so that they compute the same; what remains is rounding,
which float32 carries further, and which steps that accept, resample or choose an action can turn
into another draw.  Every component also makes a run with random numbers of the GPU."""

from __future__ import annotations

import math

import pytest
import torch
from contract.partners import runs, runs_of
from gpu.cpu_noise import CpuGenerator, CpuNoise, CpuStreams
from matplotlib.figure import Figure

from components import registry
from components.errors import NumericalError
from components.maths.compiled import loops
from runner.errors import ConfigError
from runner.execution import execute
from runner.execution.execute import run

HERE = torch.cuda.is_available()
NONE = "no GPU was found (torch.cuda.is_available() is False): nothing was compared with the CPU"
FAMILIES = (
    {str(r): r for name in registry.names("inference") for r in runs_of("inference", name)}
    if HERE
    else {"none": None}
)
EVERY = FAMILIES | ({str(r): r for r in runs()} if HERE else {})
SHORT = ["steps=6", "record_every=1", "eval_every=3", "checkpoint_every=3"]
CLOSE = {"float64": 1e-6, "float32": 1e-2}  # relative, and of the size 1
# scores of ranks: rounding orders draws at one distance of their median either way
RANKS = {"rhat": 0.25}
# acra: the candidates of an email are the first of words with equal odds, in any order
TIES = {"acra": 1e-2}


def test_draws_are_those_of_the_cpu_on_any_device():
    """On ``meta``, which has shapes alone: what the CPU's generators have given afterwards is the
    same."""
    one, two = CpuStreams(0, 0, "meta"), CpuStreams(0, 0, "cpu")

    def draw(rng: CpuStreams, device: str) -> list[torch.Tensor]:
        x = torch.zeros(2, 3, device=device)
        return [
            torch.randn(3, generator=rng.noise, device=device),
            x.normal_(generator=rng.noise),
            torch.bernoulli(x.sigmoid(), generator=rng.noise),
            torch.randperm(5, generator=rng.batches, device=device),
            torch.rand(2, generator=rng.at("attack", 3), device=device),
            torch.rand(2, generator=CpuGenerator(x.device).manual_seed(0), device=device),
        ]

    with CpuNoise():
        there, here = draw(one, "meta"), draw(two, "cpu")
    assert [(t.shape, t.dtype) for t in there] == [(t.shape, t.dtype) for t in here]
    assert {t.device.type for t in there} == {"meta"}
    for name, state in one.state().items():
        assert torch.equal(state, two.state()[name]), name


@pytest.mark.gpu
@pytest.mark.skipif(not HERE, reason=NONE)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_run_of_a_gpu_is_that_of_the_cpu(make_job, monkeypatch, family, dtype):
    monkeypatch.setattr(execute, "Streams", CpuStreams)
    monkeypatch.setattr(torch, "Generator", CpuGenerator)
    # compiled loops draw other numbers than torch, on the CPU only
    monkeypatch.setattr(loops, "available", lambda: False)
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    found = {}
    for device in ("cpu", "cuda"):
        try:
            job = make_job(
                *FAMILIES[family].overrides, *SHORT, f"dtype={dtype}", f"device={device}"
            )
            with CpuNoise():
                found[device] = run(job)[1]
        except (
            ConfigError,
            NumericalError,
        ) as error:  # a method that refuses float32 refuses it on both
            found[device] = str(error)
    if isinstance(found["cpu"], str):
        assert isinstance(found["cuda"], str), f"on the CPU: {found['cpu']}"
        pytest.skip(f"not on the CPU either: {found['cpu']}")
    assert isinstance(found["cuda"], dict), found["cuda"]
    apart = {
        name: (ours, theirs)
        for name, cpu in found["cpu"].items()
        for ours, theirs in zip(found["cuda"][name], cpu, strict=True)
        if "seconds" not in name and not close(ours, theirs, tolerance(family, name, dtype))
    }
    assert apart == {}


@pytest.mark.gpu
@pytest.mark.skipif(not HERE, reason=NONE)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted(EVERY))
def test_a_run_draws_on_the_gpu(make_job, monkeypatch, family):
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    EVERY[family].skip_without_packages()
    # an attacker of filters needs a run over the whole series
    whole = ["dataset.n_steps=6"] if family.endswith("-spoofing") else []
    try:
        run(make_job(*EVERY[family].overrides, *whole, *SHORT, "device=cuda"))
    except (ConfigError, NumericalError) as error:  # six steps are too many for some games
        pytest.skip(str(error))


def tolerance(family: str, name: str, dtype: str) -> float:
    """Largest difference of one score of a family, relative and absolute."""
    method = family.split("-")[2]
    return max(CLOSE[dtype], RANKS.get(name.split("/")[0], 0.0), TIES.get(method, 0.0))


def close(ours: float, theirs: float, tolerance: float) -> bool:
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
