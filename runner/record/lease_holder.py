"""Holder of a lease: a process on a machine, as recorded in the lease's file."""

from __future__ import annotations

import os
import platform
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.disk.plain_file import open_plain, parse_json

NAME = ".lock"


@dataclass(frozen=True)
class LeaseHolder:
    """The process that holds a lease."""

    host: str
    place: str  # boot of the machine and namespace of process ids
    process: int
    start: str  # start time of the process, because ids are reused
    token: str  # unique token of the lease

    @property
    def words(self) -> str:
        """Description for users."""
        is_local = self.host == platform.node()
        return f"process {self.process}{'' if is_local else f' on {self.host}'}"


def _read(*parts: str) -> str:
    with suppress(OSError):
        return Path(*parts).read_text().strip()
    return ""


def place() -> str:
    """Identifier of the scope in which a process id is unique; empty if unknown."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    boot = _read("/proc/sys/kernel/random/boot_id")
    return f"{platform.node()} {boot} {space}" if boot else ""


def process_start(process: int) -> str:
    """Start of a process in ticks since boot; empty if unknown or not running."""
    after_name = _read("/proc", str(process), "stat").rpartition(")")[2].split()
    return after_name[19] if len(after_name) > 19 else ""


def holder(path: Path) -> tuple[LeaseHolder, float] | None:
    """Holder of a lease and its last touch by the file system's clock; None without a valid lease.

    Raises:
        PermissionError: the lease is not readable for this user."""
    try:
        with open_plain(path) as file:
            owner = LeaseHolder(**parse_json(file.read()))
            return owner, os.fstat(file.fileno()).st_mtime
    except PermissionError:
        raise
    except (OSError, ValueError, TypeError):  # ValueError: invalid JSON or encoding
        return None


def clock(folder: Path) -> float:
    """Time of the file system of a folder, or local time if the folder is not writable."""
    probe = folder / f"{NAME}.{uuid.uuid4().hex}.now"
    try:
        with probe.open("xb") as file:
            file.write(b"0")
            file.flush()
            os.fsync(file.fileno())  # an NFS server sets the time when it receives the byte
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
