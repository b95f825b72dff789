"""Environment of a run on this machine, for ``runner doctor``.

It covers Python, packages, torch, GPU, threads, memory.
"""

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

PROJECT = "bayes-runner"
OLDEST_PYTHON = (3, 11)
# absent: nothing is wrong, and a run that needs it downloads it or uses something else
Level = Literal["ok", "absent", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of the report; ``mend`` is the action to take, unless all is well."""

    level: Level
    what: str
    found: str
    mend: str = ""


Findings = Iterator[Finding]


# ---- the program
# ------------------------------------------------------------------------------------------------------
def python() -> Findings:
    detail = f"{platform.python_version()} ({sys.executable})"
    is_old = sys.version_info[:2] < OLDEST_PYTHON
    mend = "use Python {}.{} or newer".format(*OLDEST_PYTHON) if is_old else ""
    yield Finding("problem" if is_old else "ok", "python", detail, mend)


def packages() -> Findings:
    """Every package that the project requires, in the version that it requires."""
    from packaging.requirements import Requirement

    try:
        requirements = importlib.metadata.requires(PROJECT) or []
    except importlib.metadata.PackageNotFoundError:
        mend = "pip install -e . in its folder"
        yield Finding("problem", "packages", f"{PROJECT} is not installed", mend)
        return
    fine = []
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = requirement.name
        mend = f"pip install '{requirement}'"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding("problem", name, "not installed", mend)
            continue
        if requirement.specifier.contains(version, prereleases=True):
            fine.append(f"{name} {version}")
        else:
            found = f"{version}, tested with {requirement.specifier}"
            yield Finding("warning", name, found, mend)
    yield Finding("ok", "packages", ", ".join(fine) or "none")


def torch_and_gpu() -> Findings:
    """That torch can be imported, and whether it sees a GPU."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        yield Finding("problem", "torch", str(error).splitlines()[0], "pip install torch==2.13.0")
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
        mend = "install a CUDA build of torch for device=cuda (see pytorch.org)"
        yield Finding("warning", "gpu", "a driver is here, but this torch is built for CPU", mend)
    elif driver or built:
        mend = "look at what nvidia-smi says; until then use device=cpu"
        yield Finding("warning" if driver else "ok", "gpu", "none found", mend if driver else "")
    else:
        yield Finding("ok", "gpu", "none found; runs use device=cpu")


# ---- the machine
# ------------------------------------------------------------------------------------------------------
def threads() -> Findings:
    """Cores that may be used, what keeps them busy, and the threads that a job will take."""
    is_told = sys.platform == "linux"
    cpus = len(os.sched_getaffinity(0)) if is_told else os.cpu_count() or 1
    value = os.environ.get("OMP_NUM_THREADS")
    if value is None:
        yield Finding(
            "ok", "threads", f"{cpus} cores; OMP_NUM_THREADS is not set, a job takes threads=1"
        )
    elif not value.isdigit() or int(value) < 1:
        yield Finding("problem", "threads", f"OMP_NUM_THREADS={value}", "unset it, or set it to 1")
    elif int(value) > cpus:
        detail = f"OMP_NUM_THREADS={value} on {cpus} cores"
        yield Finding(
            "warning",
            "threads",
            detail,
            "set it to 1 and run jobs in parallel: steps get several times slower",
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
            "other work slows runs down; times will not compare",
        )


def memory() -> Findings:
    available = free_memory()
    if available is None:
        yield Finding("ok", "memory", "unknown on this system")
        return
    detail = f"{available / GIB:.1f} GiB available"
    mend = "close other programs, or run fewer jobs at once" if available < 2 * GIB else ""
    yield Finding("warning" if mend else "ok", "memory", detail, mend)
