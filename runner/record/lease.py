"""Lease of a run, ``<run>/.lock``: exclusive access of a process, on any machine, to the run's folder.

The lease contains host, process and start of the process, and a heartbeat touches it every
``HEARTBEAT_SECONDS`` seconds.  On the same machine the process itself is checked, so that a killed
process is detected immediately; a lease from another machine expires when it has not been touched
for ``HEARTBEAT_TIMEOUT_SECONDS`` seconds.  Both times come from the file system (times of the lease
and of a file touched now), because clocks of machines may differ.  Only operations that are
atomic on NFS are used: ``link`` to create it, ``rename`` to replace it, and an ``open`` before
reading its time, because on NFS cached attributes may be a minute old.

filelock's SoftFileLease is similar, but does not support takeover on NFS and SMB, which cannot
exchange two names, and cannot query without acquiring.  ``flock`` is not visible to other machines
on every shared disk, and does not exist on Windows.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
import weakref
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from runner.disk.atomic import alive
from runner.errors import ConfigError, RunFailure
from runner.record.lease_holder import NAME as NAME
from runner.record.lease_holder import LeaseHolder, clock, holder, place, process_start

HEARTBEAT_SECONDS = 10.0
# seconds between touches, and without a touch until a lease of another machine expires
HEARTBEAT_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.5  # seconds between checks of a lease of another machine that may expire soon
RETRY_SECONDS = 0.01  # seconds before a retry if another process was first
_held_tokens: set[str] = set()  # tokens of the leases held by this process


class LeaseLostError(RunFailure):
    """Another process has taken over the run, so this one must stop writing."""


def _is_lease_void(path: Path, of: LeaseHolder, touched: float) -> bool:
    """True if the holder of the lease no longer exists or its heartbeat has expired."""
    if of.place and of.place == place():
        if of.process == os.getpid():
            return of.token not in _held_tokens
        return not alive(of.process) or process_start(of.process) not in ("", of.start)
    return clock(path.parent) - touched > HEARTBEAT_TIMEOUT_SECONDS


def is_leased(path: Path) -> bool:
    """True if a process holds the lease of a run's folder, as far as known."""
    try:
        lease = holder(path)
    except PermissionError:
        return False
    return lease is not None and not _is_lease_void(path, *lease)


class Lease:
    """A lease held by this process and kept alive until ``close`` or garbage collection.

    The heartbeat runs in a separate thread, so that long steps do not delay it.

    Source: Gray & Cheriton (1989), leases."""

    def __init__(self, path: Path, mine: LeaseHolder):
        self.path = path
        self.mine = mine
        self._seen = time.time()
        self._done = threading.Event()
        self._end = weakref.finalize(self, _release_lease, path, mine, self._done, os.getpid())
        threading.Thread(
            target=_send_heartbeats, args=(path, mine, self._done), name="lease", daemon=True
        ).start()

    @property
    def is_unverified(self) -> bool:
        """True if the last check is so old that the lease may be lost, for example after the machine
        was suspended."""
        return abs(time.time() - self._seen) > HEARTBEAT_SECONDS

    def check(self) -> None:
        """Verify the lease before writing.

        Raises:
            LeaseLostError: another process holds the lease.
        """
        self._seen = time.time()
        lease = holder(self.path)
        if self._done.is_set() or (lease is not None and lease[0].token == self.mine.token):
            return
        reason = f"{lease[0].words} has taken over the run" if lease else f"{self.path} was removed"
        raise LeaseLostError(
            f"lease lost: {reason}, after this process had no heartbeat for "
            f"{HEARTBEAT_TIMEOUT_SECONDS:.0f} s; it stops writing"
        )

    def close(self) -> None:
        """Release the lease."""
        self._end()


def _send_heartbeats(path: Path, mine: LeaseHolder, done: threading.Event) -> None:
    while not done.wait(HEARTBEAT_SECONDS):
        lease = holder(path)
        if lease is not None and lease[0].token != mine.token:
            return
        with suppress(OSError):  # a server that is temporarily unavailable
            os.utime(path)  # without a time, so that the server's is used


def _release_lease(path: Path, mine: LeaseHolder, done: threading.Event, owner: int) -> None:
    if os.getpid() != owner:  # a forked process does not own the lease
        return
    done.set()
    _held_tokens.discard(mine.token)
    lease = holder(path)
    if lease is not None and lease[0].token == mine.token:
        with suppress(OSError):
            path.unlink()


def _create_lease(path: Path, mine: LeaseHolder) -> bool:
    """Create a lease if none exists; return False if another process was first."""
    temp_path = path.with_name(f"{path.name}.{mine.token}")
    try:
        temp_path.write_text(json.dumps(asdict(mine)), encoding="utf-8")
        try:
            os.link(temp_path, path)
        except FileExistsError:
            return temp_path.stat().st_nlink == 2  # NFS: created although the reply was lost
        except OSError:  # a file system without links: the first writer is the owner
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(mine)))
            except FileExistsError:
                return False
        return True
    finally:
        temp_path.unlink(missing_ok=True)


def _replace_lease(path: Path, old: str, mine: LeaseHolder) -> bool:
    """Replace a void lease with token ``old``; return False if another process was first.

    The process that creates ``.lock.<old>.claim`` may replace the lease if it still exists."""
    claim = path.with_name(f"{path.name}.{old}.claim")
    if not _create_lease(claim, mine):
        claim_lease = holder(claim)
        if claim_lease is None or _is_lease_void(
            claim, *claim_lease
        ):  # the owner was killed between two operations
            claim.unlink(missing_ok=True)
        return False
    try:
        lease = holder(path)
        if (lease[0].token if lease else "") != old:
            return False
        temp_path = path.with_name(f"{path.name}.{mine.token}")
        temp_path.write_text(json.dumps(asdict(mine)), encoding="utf-8")
        temp_path.replace(path)
        return True
    finally:
        claim.unlink(missing_ok=True)


def take_lease(folder: Path, signature: str) -> Lease:
    """Acquire the lease of a run's folder.

    A lease of another machine that may have expired is observed until it is touched or void.

    Raises:
        ConfigError: another process holds the lease.
    """
    path = folder / NAME
    process = os.getpid()
    mine = LeaseHolder(platform.node(), place(), process, process_start(process), uuid.uuid4().hex)
    # before the file is visible, so that other threads of this process do not treat it as abandoned
    _held_tokens.add(mine.token)
    try:
        _claim(path, mine, signature)
    except BaseException:
        _held_tokens.discard(mine.token)
        raise
    _remove_stale_files(folder)
    return Lease(path, mine)


def _claim(path: Path, mine: LeaseHolder, signature: str) -> None:
    """Acquire a lease, or take over a void one.

    Raises:
        ConfigError: another process holds the lease.
    """
    from runner.terminal import printer

    first: dict[str, float] = {}  # token -> last touch at the first observation
    while True:
        lease = holder(path)
        if lease is None:
            if _create_lease(path, mine) or (
                path.exists() and holder(path) is None and _replace_lease(path, "", mine)
            ):
                return
            time.sleep(RETRY_SECONDS)
            continue
        owner, touched = lease
        if _is_lease_void(path, owner, touched):
            if _replace_lease(path, owner.token, mine):
                return
            time.sleep(RETRY_SECONDS)
            continue
        is_here = owner.place and owner.place == place()
        if is_here or first.get(owner.token, touched) != touched:
            raise ConfigError(
                f"run {signature} is already active ({owner.words}); wait for it, or change seed="
            )
        if owner.token not in first:
            printer.out.print(f"note     {owner.words} may still be active: checking its heartbeat")
        first[owner.token] = touched
        time.sleep(POLL_SECONDS)


def _remove_stale_files(folder: Path) -> None:
    """Remove files of processes killed between two operations."""
    for path in folder.glob(f"{NAME}.*"):
        with suppress(OSError):
            if clock(folder) - path.stat().st_mtime > HEARTBEAT_TIMEOUT_SECONDS:
                path.unlink()
