"""Resources used by a run: CPU seconds by phase, peak memory, disk.

    cpu_seconds = start + set_up + training + evaluations + saving + final + files + rest

CPU seconds include all threads of the process and children that have ended.  They are stored in
``usage`` of run.json; a resumed run adds to them.  ``runner price`` uses them for predictions.
"""

from __future__ import annotations

import resource
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PHASES = ("start", "set_up", "training", "evaluations", "saving", "final", "files")
MIB = 2**20
MB = 10**6  # decimal, as for disks

_started_for_one_run = False


def claim_process() -> None:
    """Assign the CPU time of this process so far, its imports, to the start of its first run."""
    global _started_for_one_run
    _started_for_one_run = True


def cpu_now() -> float:
    """CPU seconds of this process and of its children that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(spent.ru_utime + spent.ru_stime for spent in map(resource.getrusage, kinds))


def _take_start() -> float:
    """CPU seconds before the start of a run, assigned to the first run of a process."""
    global _started_for_one_run
    is_first = _started_for_one_run
    _started_for_one_run = False
    return cpu_now() if is_first else 0.0


def peak_mib() -> float:
    """Peak resident memory of this process in MiB."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    size = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # kB on Linux, bytes on macOS
    return size / MIB if sys.platform == "darwin" else size / 1024


def folder_bytes(folder: Path) -> int:
    """Total size of the files in a folder in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@dataclass
class UsageMeter:
    """CPU seconds of a run by phase; a nested phase counts only for itself."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    # usage of earlier processes of this run
    before: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 0  # number of finished replicates, or one for all of them together
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0

    def __post_init__(self) -> None:
        self._since = cpu_now()
        self.seconds["start"] += _take_start()

    def _switch(self) -> None:
        now = cpu_now()
        self.seconds[self._open[-1] if self._open else "rest"] += now - self._since
        self._since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Context that counts CPU time for a phase."""
        self._switch()
        self._open.append(name)
        try:
            yield
        finally:
            self._switch()
            self._open.pop()

    def facts(self) -> dict[str, float]:
        """Resources of the run so far, as recorded."""
        self._switch()
        spent = {name: round(self.seconds[name] + self.before.get(name, 0.0), 3) for name in PHASES}
        total = sum(self.seconds.values()) + self.before.get("cpu_seconds", 0.0)
        peak = max(peak_mib(), self.before.get("peak_mib", 0.0))
        passes = self.passes + self.before.get("passes", 0)
        sizes = {"cpu_seconds": round(total, 3), "peak_mib": round(peak, 1), "passes": passes}
        return sizes | spent
