"""The stand-in for a GPU: errors, random numbers, and detection of a tensor left on the CPU by a
component."""

from __future__ import annotations

import importlib
import inspect
import types

import pytest
import torch
from device import stand_in
from device.devices import LeftOutError, draw_strictly, every_run, score, short_run
from support.runs.configured import draw_normal

from runner.compose import job
from runner.errors import ConfigError

pytestmark = [pytest.mark.device, pytest.mark.filterwarnings("ignore")]
MIXED = {
    "a sum": lambda on_device, on_cpu: on_device + on_cpu,
    "a sum in place": lambda on_device, on_cpu: on_cpu.add_(on_device),
    "a matrix product": lambda on_device, on_cpu: on_cpu @ on_device,
    "a row among others": lambda on_device, on_cpu: torch.cat([on_device, on_cpu]),
    "a choice": lambda on_device, on_cpu: torch.where(on_device > 0, on_device, on_cpu),
    "indices of the device, numbers of the CPU": lambda on_device, on_cpu: on_cpu[(on_device > 0)],
    "a convolution": lambda on_device, on_cpu: torch.conv1d(on_device[None], on_cpu[None]),
    "a generator of the CPU": lambda on_device, on_cpu: on_device.normal_(
        generator=torch.Generator()
    ),
    "a generator of the device": lambda on_device, on_cpu: torch.rand(
        2, generator=torch.Generator(on_device.device)
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_devices_are_refused(device, name):
    on_device = torch.ones(3, 3, device=device)
    on_cpu = torch.ones(3, 3)
    with pytest.raises((RuntimeError, IndexError)):
        MIXED[name](on_device, on_cpu)


def test_operations_allowed_on_gpu_are_allowed(device):
    x = torch.arange(6.0, device=device).view(2, 3)
    number = torch.tensor(2.0)
    assert (x * number).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert x[:, torch.tensor([2, 0])].tolist() == [[2, 0], [5, 3]]
    x[0, 0] = number
    assert x.cpu()[0, 0] == 2
    with pytest.raises(TypeError):
        x.numpy()


def test_seeded_draws_match_cpu(device):
    ours, theirs = (torch.Generator(where).manual_seed(7) for where in (device, "cpu"))
    for _ in range(2):
        noise = torch.randn(3, generator=ours, device=device)
        assert torch.equal(noise.cpu(), torch.randn(3, generator=theirs))
    assert torch.equal(ours.get_state(), theirs.get_state())
    repeat = torch.Generator(device)
    repeat.set_state(theirs.get_state())
    assert torch.rand((), generator=repeat, device=device).cpu() == torch.rand((), generator=theirs)


def test_gradients_match_cpu(device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3),
        torch.nn.BatchNorm1d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 2),
    )
    memory = torch.nn.LSTM(2, 3, batch_first=True)
    x = torch.randn(5, 2, 6)
    gradients = {}
    for where in ("cpu", device):
        net.to(where).zero_grad()
        memory.to(where).zero_grad()
        loss = net(x.to(where)).square().sum() + memory(x.mT.to(where))[0].square().sum()
        loss.backward()
        parameters = [*net.parameters(), *memory.parameters()]
        gradients[where] = [p.grad.cpu().clone() for p in parameters if p.grad is not None]
    assert len(gradients["cpu"]) == 10
    for ours, theirs in zip(gradients[device], gradients["cpu"], strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_decomposition_signs_differ_from_cpu(device):
    x = draw_normal(4, 4)
    U, s, Vh = torch.linalg.svd(x.to(device))
    assert torch.allclose(((U * s) @ Vh).cpu(), x)
    assert torch.allclose(U.cpu(), -torch.linalg.svd(x)[0])


def test_synchronisations_are_counted(device):
    x = torch.ones(3, device=device)
    stand_in.clear_waits()
    assert bool((x.sum() > 0) & (x[x > 0].sum() > 0))
    x.cpu()
    assert stand_in.waits() == {"item": 1, "nonzero": 1, "device to host": 1}


# module, its line, a faulty replacement, and a run that executes it
PLANTED = [
    (
        "components.figures.variational.beside_exact",
        "theta.new_zeros(1, 2)",
        "__import__('torch').zeros(1, 2, dtype=theta.dtype)",
        "gaussian-target_density-bbvi",
    ),
    (
        "components.attackers.evasion.loop",
        "x.new_zeros(len(x), dtype=torch.bool)",
        "torch.zeros(len(x), dtype=torch.bool)",
        "digits-mlp-map-apgd",
    ),
    (
        "components.series.filtering.generalised_particle_filter",
        "torch.full_like(log_w, -math.log(n))",
        "torch.zeros(log_w.shape, dtype=log_w.dtype) - math.log(n)",
        "nonlinear_growth-nonlinear_growth-bootstrap_filter",
    ),
]


@pytest.mark.parametrize(("module", "line", "hasty", "name"), PLANTED)
def test_tensor_left_on_cpu_is_detected(device, make_job, monkeypatch, module, line, hasty, name):
    draw_strictly(monkeypatch)
    keys = [*short_run(name, every_run()[name].overrides), f"device={device}"]
    original = importlib.import_module(module)
    source = inspect.getsource(original)
    assert line in source, "the module has changed: plant the fault elsewhere in it"
    plant(original, source.replace(line, hasty), monkeypatch)
    with pytest.raises((RuntimeError, LeftOutError), match=r"two devices|same device"):
        score(make_job, *keys)


def plant(original: types.ModuleType, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the code of a module's functions and methods with code from another source."""
    copy = types.ModuleType(original.__name__)
    copy.__file__ = original.__file__
    monkeypatch.setattr("components.registry.register", lambda *_, **__: lambda cls: cls)
    exec(compile(source, str(original.__file__), "exec"), vars(copy))
    for name, mine in functions_of(copy).items():
        monkeypatch.setattr(functions_of(original)[name], "__code__", mine.__code__)


def functions_of(module: types.ModuleType) -> dict[str, types.FunctionType]:
    """Functions and methods without free variables that a module defines, by qualified name."""
    owners = [module, *(v for v in vars(module).values() if inspect.isclass(v))]
    return {
        f.__qualname__: f
        for owner in owners
        for f in vars(owner).values()
        if inspect.isfunction(f) and f.__module__ == module.__name__ and not f.__closure__
    }


def test_device_without_float64_is_refused(device, make_job, monkeypatch):
    stand_in.set_float64(False)
    try:
        with pytest.raises(
            ConfigError, match=r"^dtype=float64: not supported on device=standin; use dtype=float32"
        ):
            make_job("+experiment=mog", "smoke=true", "dtype=float64", f"device={device}")
        name = "linear_simulation-mlp-map"
        if name not in every_run():
            name = "two_moons-mlp-map"
        keys = [*short_run(name, every_run()[name].overrides), f"device={device}"]
        scores = score(make_job, *keys, "dtype=float32")
        assert isinstance(scores, dict), scores
        name = "wiener_velocity-lgssm-kalman"
    finally:
        stand_in.set_float64(True)


def test_unknown_device_number_is_refused(device):
    with pytest.raises(ConfigError, match=r"device=standin:1: .* has 1 .*; use standin:0"):
        job.check_device("standin:1", "float32")
