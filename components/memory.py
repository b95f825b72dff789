"""Available memory on this machine or on a GPU; torch is imported only for a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GIB = 2**30
MEMINFO = Path("/proc/meminfo")
OWN = Path("/proc/self/status")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def _read_memory_bytes(path: Path, name: str) -> int | None:
    """Bytes on a named line of a file in /proc; None if there is no such line."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None
    )


def _container_limit() -> int | None:
    """Memory limit of a container, which /proc/meminfo does not include."""
    for path in LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 2**60:
            return int(text)
    return None


def free_memory() -> int | None:
    """Available bytes on this machine or in its container; total memory if the system does not
    report the available memory."""
    free = _read_memory_bytes(MEMINFO, "MemAvailable")
    if free is None:
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError):
            return None
    return min(free, _container_limit() or free)


def free_device_memory(device: torch.device) -> int | None:
    """Bytes of tensors that this process could hold on a device: free memory plus the memory that
    it holds already, most of it cached after an earlier replicate; None if unknown."""
    if device.type == "cuda":
        import torch

        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    free = free_memory()
    return None if free is None else free + (_read_memory_bytes(OWN, "RssAnon") or 0)
