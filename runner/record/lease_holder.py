"""Holder of a lease: a process on a machine, as the lease's file names it."""

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
    """Who holds a lease."""

    host: str
    place: str  # the machine since its start, and the processes visible there
    process: int
    start: str  # start time of the process: process numbers are reused
    token: str  # of this lease only

    @property
    def words(self) -> str:
        """As users are told of it."""
        here = self.host == platform.node()
        return f"process {self.process}{'' if here else f' on {self.host}'}"


def _read(*parts: str) -> str:
    with suppress(OSError):
        return Path(*parts).read_text().strip()
    return ""


def place() -> str:
    """Identifier of the scope in which a process number is unique; empty if not certain."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    boot = _read("/proc/sys/kernel/random/boot_id")
    return f"{platform.node()} {boot} {space}" if boot else ""


def process_start(process: int) -> str:
    """When a process began, in ticks since the machine did; empty: unknown, or it is no more."""
    after_name = _read("/proc", str(process), "stat").rpartition(")")[2].split()
    return after_name[19] if len(after_name) > 19 else ""


def holder(path: Path) -> tuple[LeaseHolder, float] | None:
    """Who holds a lease, and when it was touched by the file system's clock; None: nobody, or
    nothing that reads as one.

    Raises:
        PermissionError: this user may not read it."""
    try:
        with open_plain(path) as file:
            owner = LeaseHolder(**parse_json(file.read()))
            return owner, os.fstat(file.fileno()).st_mtime
    except PermissionError:
        raise
    except (OSError, ValueError, TypeError):  # ValueError: JSON, or a text that no encoding fits
        return None


def clock(folder: Path) -> float:
    """Time according to the file system of a folder; the local time if it cannot be written."""
    probe = folder / f"{NAME}.{uuid.uuid4().hex}.now"
    try:
        with probe.open("xb") as file:
            file.write(b"0")
            file.flush()
            os.fsync(file.fileno())  # an NFS server sets the time when it gets the byte
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
