"""An exact Gaussian process that does not fit in memory is refused before it is built."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from support.small.shallow_gp_problems import problem, streams

from components import memory
from components.errors import ConfigMismatchError
from components.models.shallow_gp import exact_cost
from components.models.shallow_gp.labels import Labels
from components.registry import get
from runner import CONF

GIB = 2**30


def labels(groups, n, dtype=torch.float64):
    """Unfilled labels, because only shapes matter."""
    x = torch.zeros(1, dtype=dtype).expand(groups, n, 1)
    mask = torch.ones(1, dtype=torch.bool).expand(groups, n)
    return Labels(x, x[..., 0], mask.long(), mask)


def room(monkeypatch, gib):
    monkeypatch.setattr(exact_cost, "free_device_memory", lambda device: gib * GIB)


def test_all_of_sarcos_exceeds_24_gib(monkeypatch):
    """3 matrices of 44,484² float64 numbers and those of a block take 46 GiB; none is allocated."""
    room(monkeypatch, 24)
    labels_1 = labels(1, 44_484)
    seven = labels(7, 6_355)
    with pytest.raises(
        ConfigMismatchError,
        match=r"^model\.top=coregionalised: .* 44,484 × 44,484, needs 45\.6 GiB but 24\.0 are free; "
        r"use model=mmdgp, model\.top=independent \(7\.7 GiB\), dtype=float32 \(22\.8 GiB\) or",
    ):
        exact_cost.raise_if_too_large(labels_1, "model.top=coregionalised", "model=mmdgp", seven)
    room(monkeypatch, 7)
    with pytest.raises(
        ConfigMismatchError,
        match=r"use model=mmdgp, dtype=float32 \(3\.8 GiB\) or fewer training rows$",
    ):
        exact_cost.raise_if_too_large(seven, "model.top=independent", "model=mmdgp", seven)
    with pytest.raises(ConfigMismatchError, match=r"use model=mmdgp or fewer training rows$"):
        exact_cost.raise_if_too_large(labels_1, "model.top=coregionalised", "model=mmdgp", seven)
    exact_cost.raise_if_too_large(
        labels(7, 6_355, torch.float32), "model.top=independent", "model=mmdgp"
    )
    largest = exact_cost.largest_exact(24 * GIB)
    sizes = [exact_cost._matrix_bytes(labels(1, largest + more)) / GIB for more in (0, 1)]
    assert sizes[0] <= 24 < sizes[1]
    monkeypatch.setattr(
        exact_cost, "free_device_memory", lambda device: None
    )  # a system without this information
    exact_cost.raise_if_too_large(labels_1, "model.top=coregionalised", "model=mmdgp")


PEAK = """
import sys
from pathlib import Path
import torch
import yaml
from support.small.shallow_gp_problems import problem, streams
from components.registry import get
from runner import CONF
from components.models.shallow_gp.exact_cost import _matrix_bytes
from runner.execution.memory import keep_freed_memory
keep_freed_memory()
torch.set_num_threads(1)
values = yaml.safe_load((CONF / "model" / "igp.yaml").read_text())
gp = get("model", "igp")(**values).build(problem(n=int(sys.argv[1]), T=3, keep=0.4), streams())
told = lambda: dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
peak = lambda: int(told()["VmHWM"].split()[0]) * 1024  # of this program only: ru_maxrss starts at its parent's value
before = peak()
for _ in range(2):
    gp.elbo(None, None)["elbo"].backward()
print((peak() - before) / _matrix_bytes(gp.labels))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and glibc's heap")
@pytest.mark.slow  # a minute
@pytest.mark.parametrize("n", [3_300, 8_000])  # as a whole, and in blocks
def test_peak_memory_equals_the_estimate(n):
    """Measured in a separate process."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(n)],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(root), str(root.parent)]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert 0.6 < float(done.stdout) < 1.1


def build(name, **changes):
    values = yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text()) | changes
    return get("model", name)(**values).build(problem(n=40, keep=0.5), streams())


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("igp", {}),
        ("cgp", {}),
        ("collapsed_mdgp", {"top": "independent"}),
        ("collapsed_mdgp", {"top": "coregionalised"}),
    ],
)
def test_every_exact_model_is_refused_without_memory(name, changes, monkeypatch):
    room(monkeypatch, 0)
    with pytest.raises(ConfigMismatchError, match="are free; use model"):
        build(name, **changes)


# free memory
def test_available_memory_includes_that_of_the_process(tmp_path, monkeypatch):
    for name, text in {
        "meminfo": "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n",
        "status": "RssAnon:\t 500 kB\n",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN", tmp_path / "status")
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "max",))
    assert memory.free_memory() == 4000 * 1024
    assert memory.free_device_memory(torch.device("cpu")) == 4500 * 1024
    (tmp_path / "max").write_text("1048576\n")  # of the container
    assert memory.free_memory() == 2**20
    (tmp_path / "max").write_text("max\n")
    assert memory.free_memory() == 4000 * 1024
    (tmp_path / "meminfo").unlink()
    assert memory.free_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
