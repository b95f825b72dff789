"""Freed memory is kept by the process and lies on huge pages: faulting 4 KiB pages in, again and
again, costs a training step of a deep GP more than half of its time."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import re
import resource
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from runner.errors import RunFailure

# glibc's mallopt: the parameters' numbers are part of its ABI (malloc.h).
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
MALLOPT_DISABLED = -1
HUGE_PAGE_BYTES = 2**21
STACK_BYTES = 2**23  # of a thread
# Address space that importing torch takes, and BLAS for each thread with its buffers.
TORCH_BYTES = 600 * 2**20
BLAS_BYTES = 200 * 2**20
# Threads of a run besides those of OpenBLAS, once each of numpy and scipy, and OpenMP.
RUN_THREADS = 4
BLAS_LIBRARIES = 3
SMALL_STACK_BYTES = 2**20  # holds the variables of threads of all libraries as well
THREAD_FIX = (
    "lower OMP_NUM_THREADS, raise the limit of processes (ulimit -u), or end other programs"
)

# Parts of the out-of-memory messages of torch's allocators, numpy and the loader of libraries.
OUT_OF_MEMORY_MESSAGES = (
    "failed to map segment",
    "annot allocate memory",
    "DefaultCPUAllocator",
    "CUDA out of memory",
    "can't allocate memory",
    "not enough memory",
    "Unable to allocate",
)


def out_of_memory_message(error: BaseException) -> str | None:
    """Message for an error that reports exhausted memory; None for any other error."""
    message = str(error)
    if not isinstance(error, MemoryError) and not any(w in message for w in OUT_OF_MEMORY_MESSAGES):
        cause = error.__cause__ or error.__context__
        if cause is not None:
            return out_of_memory_message(cause)
        if address_space_left() >= STACK_BYTES:  # with less, Python itself raises wrong errors
            return None
    match = re.search(
        r"[Tt]ried to allocate ([\d.]+ ?\w+)|Unable to allocate ([\d.]+ \w+)", message
    )
    size = f" ({match.group(1) or match.group(2)} more were asked for)" if match else ""
    return (
        f"out of memory{size}: ask for less at once (batch_size, chains, particles, draws that are kept, replicates), or take "
        "a larger machine; what was saved is kept"
    )


def address_space_left() -> float:
    """Bytes that a limit of address space (``ulimit -v``) leaves; infinity without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(OSError):
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return limit - pages * mmap.PAGESIZE
    return math.inf


def check_limits(*, with_torch: bool) -> bool:
    """Checks that the limits of threads and of address space leave enough to load BLAS, and torch,
    which abort or retry for ever if they do not.

    If the address space is limited, BLAS gets one thread unless OMP_NUM_THREADS is set.

    Returns:
        True if the address space is limited.

    Raises:
        RunFailure: too little is left.
    """
    left = address_space_left()
    if left != math.inf:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    given = re.match(r"[1-9]\d*", os.environ.get("OMP_NUM_THREADS", ""))  # of the outer level
    threads = int(given[0]) if given else os.cpu_count() or 1
    if "torch" not in sys.modules:  # its threads run already
        _try_threads(RUN_THREADS + BLAS_LIBRARIES * threads if with_torch else threads)
    if left == math.inf:
        return False
    needed = BLAS_BYTES * threads + (TORCH_BYTES if with_torch else 0)
    if left < needed:
        raise RunFailure(
            f"out of memory: the limit of address space (ulimit -v) leaves {left / 2**20:.0f} MB, threads={threads} needs "
            f"{needed / 2**20:.0f} MB; raise the limit, or set fewer threads"
        )
    return True


def _try_threads(count: int) -> None:
    """Starts threads that end at once.

    Raises:
        RunFailure: the limit of threads is reached.
    """
    end = threading.Event()
    before = threading.stack_size(SMALL_STACK_BYTES)
    try:
        for _ in range(count):
            threading.Thread(target=end.wait, daemon=True).start()
    except RuntimeError:
        raise RunFailure(f"no further thread can be started; {THREAD_FIX}") from None
    finally:
        end.set()
        threading.stack_size(before)


def load_blas() -> None:
    """Loads BLAS with its buffers, if there is a limit of address space.

    Raises:
        RunFailure: too little is left now.
    """
    if not check_limits(with_torch="torch" not in sys.modules):
        return
    import torch
    from scipy.linalg.blas import dgemm

    eye = torch.eye(300, dtype=torch.float64)
    dgemm(1.0, (eye @ eye).numpy(), eye.numpy() @ eye.numpy())


@cache
def keep_freed_memory() -> None:
    """Asks glibc neither to trim the heap nor to serve large blocks by mmap, and the kernel to back
    the heap by huge pages where it lets processes choose (transparent_hugepage=madvise); does
    nothing where there is no glibc. The second call does nothing.

    Raises:
        RunFailure: as ``load_blas``, which comes first."""
    load_blas()
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    try:
        mallopt = libc.mallopt
        malloc = libc.malloc
        free = libc.free
        madvise = libc.madvise
    except AttributeError:
        return
    mallopt(M_TRIM_THRESHOLD, MALLOPT_DISABLED)
    mallopt(M_MMAP_MAX, 0)
    malloc.argtypes = [ctypes.c_size_t]
    malloc.restype = ctypes.c_void_p
    free.argtypes = [ctypes.c_void_p]
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    # Only addresses, no memory: the heap grows once for this block and keeps it, as nothing is
    # trimmed.
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    block = malloc(size)
    if block is None:
        return
    start = -(-block // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    madvise(
        start, max(block + size - start, 0) // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, mmap.MADV_HUGEPAGE
    )
    free(block)


def missing_float64_message(error: BaseException, device: str) -> str | None:
    """Message for an error of a device that has no float64; None for any other error.

    Some methods compute in float64 at any ``dtype``: cumulative weights of particles, say.
    """
    if device == "cpu" or not isinstance(error, TypeError) or "float64" not in str(error):
        return None
    return f"device={device}: has no float64, in which these components compute at any dtype; use device=cpu"
