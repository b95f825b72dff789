"""Checks of this machine for ``runner doctor``: Python, packages, torch, GPU, threads, memory."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from components.memory import GIB, free_memory
from components.models.shallow_gp.exact_cost import describe_free_memory
from runner.errors import first_line

PROJECT = "bayes-runner"
OLDEST_PYTHON = (3, 11)
# absent: not an error, runs download it or use something else
Level = Literal["ok", "absent", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """A line of the report; ``fix`` is the action to take, if any."""

    level: Level
    what: str
    found: str
    fix: str = ""


Findings = Iterator[Finding]


def python() -> Findings:
    detail = f"{platform.python_version()} ({sys.executable})"
    is_old = sys.version_info[:2] < OLDEST_PYTHON
    fix = "use Python {}.{} or newer".format(*OLDEST_PYTHON) if is_old else ""
    yield Finding("problem" if is_old else "ok", "python", detail, fix)


def packages() -> Findings:
    """Check that the required packages are installed in supported versions."""
    from packaging.requirements import Requirement

    try:
        requirements = importlib.metadata.requires(PROJECT) or []
    except importlib.metadata.PackageNotFoundError:
        fix = "run pip install -e . in its folder"
        yield Finding("problem", "packages", f"{PROJECT} is not installed", fix)
        return
    fine = []
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = requirement.name
        fix = f"pip install '{requirement}'"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding("problem", name, "not installed", fix)
            continue
        if requirement.specifier.contains(version, prereleases=True):
            fine.append(f"{name} {version}")
        else:
            detail = f"{version}, tested with {requirement.specifier}"
            yield Finding("warning", name, detail, fix)
    yield Finding("ok", "packages", ", ".join(fine) or "none")


def torch_and_gpu() -> Findings:
    """Check that torch can be imported, and list GPUs."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        yield Finding("problem", "torch", first_line(error), "pip install torch==2.13.0")
        return
    built = vars(torch.version).get("cuda")
    target = f"CUDA {built}" if built else "CPU"
    loops = torch.backends.cpu.get_cpu_capability()
    yield Finding("ok", "torch", f"{torch.__version__}, built for {target}, loops for {loops}")
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(i)
            yield Finding(
                "ok", f"gpu {i}", f"{facts.name}, {facts.total_memory / GIB:.0f} GiB, CUDA {built}"
            )
        return
    driver = shutil.which("nvidia-smi") is not None
    if driver and not built:
        fix = "install a CUDA build of torch for device=cuda (see pytorch.org)"
        yield Finding("warning", "gpu", "a driver is installed, but torch is built for CPU", fix)
    elif driver or built:
        fix = "check the output of nvidia-smi; until then use device=cpu"
        yield Finding("warning" if driver else "ok", "gpu", "none found", fix if driver else "")
    else:
        yield Finding("ok", "gpu", "none found; runs use device=cpu")


def threads() -> Findings:
    """Report available cores, their load, and the threads of a job."""
    cpus = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    value = os.environ.get("OMP_NUM_THREADS")
    if value is None:
        yield Finding(
            "ok", "threads", f"{cpus} cores; OMP_NUM_THREADS is not set, jobs use threads=1"
        )
    elif not value.isdigit() or int(value) < 1:
        yield Finding("problem", "threads", f"OMP_NUM_THREADS={value}", "unset it, or set it to 1")
    elif int(value) > cpus:
        yield Finding(
            "warning",
            "threads",
            f"OMP_NUM_THREADS={value} on {cpus} cores",
            "set it to 1 and run jobs in parallel; otherwise steps are several times slower",
        )
    else:
        yield Finding(
            "ok", "threads", f"{cpus} cores; OMP_NUM_THREADS={value}, unless threads=… is given"
        )
    load = os.getloadavg()[0]
    if load > 1.5 * cpus:
        yield Finding(
            "warning",
            "load",
            f"{load:.1f} on {cpus} cores",
            "other processes slow runs down; times are not comparable",
        )


def memory() -> Findings:
    available = free_memory()
    is_low = available is not None and available < 2 * GIB
    fix = "close other programs, or run fewer parallel jobs" if is_low else ""
    yield Finding("warning" if fix else "ok", "memory", describe_free_memory(available), fix)
