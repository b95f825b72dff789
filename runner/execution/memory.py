"""Memory settings and limits of the process.

The process keeps freed memory, on huge pages: repeated page faults of 4 KiB take more than half of
the time of a deep GP's training step."""

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

# parameters of glibc's mallopt; their numbers are part of its ABI (malloc.h)
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
MALLOPT_DISABLED = -1
HUGE_PAGE_BYTES = 2**21
STACK_BYTES = 2**23  # stack of a thread
# address space for importing torch, and for BLAS per thread including buffers
TORCH_BYTES = 600 * 2**20
BLAS_BYTES = 200 * 2**20
# threads of a run in addition to OpenBLAS threads, once each in numpy and scipy, and OpenMP
RUN_THREADS = 4
BLAS_LIBRARIES = 3
SMALL_STACK_BYTES = 2**20  # including thread-local variables of all libraries
THREAD_FIX = (
    "lower OMP_NUM_THREADS, raise the limit of processes (ulimit -u), or end other programs"
)

# parts of out-of-memory messages of torch's allocators, numpy and the dynamic loader
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
    """Message for an out-of-memory error; None for other errors."""
    message = str(error)
    if not isinstance(error, MemoryError) and not any(w in message for w in OUT_OF_MEMORY_MESSAGES):
        cause = error.__cause__ or error.__context__
        if cause is not None:
            return out_of_memory_message(cause)
        if address_space_left() >= STACK_BYTES:  # with less, Python raises misleading errors
            return None
    match = re.search(
        r"[Tt]ried to allocate ([\d.]+ ?\w+)|Unable to allocate ([\d.]+ \w+)", message
    )
    size = f" ({match.group(1) or match.group(2)} more were requested)" if match else ""
    return (
        f"out of memory{size}; reduce batch_size, chains, particles, kept draws or replicates, or use a larger machine; "
        "saved results are kept"
    )


def address_space_left() -> float:
    """Bytes left below the limit of address space (``ulimit -v``); infinity without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(OSError):
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return limit - pages * mmap.PAGESIZE
    return math.inf


def check_limits(*, with_torch: bool) -> bool:
    """Check that the limits of threads and address space suffice for BLAS and torch.

    Otherwise these abort or retry endlessly.  If the address space is limited, BLAS gets one thread
    unless OMP_NUM_THREADS is set.

    Returns:
        True if the address space is limited.

    Raises:
        RunFailure: a limit is too low.
    """
    available = address_space_left()
    if available != math.inf:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    # number for the outer level
    given = re.match(r"[1-9]\d*", os.environ.get("OMP_NUM_THREADS", ""))
    threads = int(given[0]) if given else os.cpu_count() or 1
    if "torch" not in sys.modules:  # otherwise its threads run already
        _try_threads(RUN_THREADS + BLAS_LIBRARIES * threads if with_torch else threads)
    if available == math.inf:
        return False
    needed = BLAS_BYTES * threads + (TORCH_BYTES if with_torch else 0)
    if available < needed:
        raise RunFailure(
            f"out of memory: the limit of address space (ulimit -v) leaves {available / 2**20:.0f} MB, but threads={threads} "
            f"requires {needed / 2**20:.0f} MB; raise the limit, or lower threads"
        )
    return True


def _try_threads(count: int) -> None:
    """Start threads that end immediately.

    Raises:
        RunFailure: the limit of threads is reached.
    """
    end = threading.Event()
    previous_size = threading.stack_size(SMALL_STACK_BYTES)
    try:
        for _ in range(count):
            threading.Thread(target=end.wait, daemon=True).start()
    except RuntimeError:
        raise RunFailure(f"the system refuses to start another thread; {THREAD_FIX}") from None
    finally:
        end.set()
        threading.stack_size(previous_size)


def load_blas() -> None:
    """Load BLAS with its buffers if the address space is limited.

    Raises:
        RunFailure: too little address space is left.
    """
    if not check_limits(with_torch="torch" not in sys.modules):
        return
    import torch
    from scipy.linalg.blas import dgemm

    eye = torch.eye(300, dtype=torch.float64)
    dgemm(1.0, (eye @ eye).numpy(), eye.numpy() @ eye.numpy())


@cache
def keep_freed_memory() -> None:
    """Keep freed memory in the process, on huge pages.

    Sets glibc to neither trim the heap nor allocate large blocks by mmap, and the kernel to use huge
    pages for the heap if it is configured with transparent_hugepage=madvise.  Has no effect without
    glibc or when called again.

    Raises:
        RunFailure: see ``load_blas``, which is called first."""
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
    """Message for the error of a device without float64; None for other errors.

    Some methods compute in float64 at any ``dtype``, for example cumulative weights of particles.
    """
    if device == "cpu" or not isinstance(error, TypeError) or "float64" not in str(error):
        return None
    return f"device={device}: lacks float64, which these components require at any dtype; use device=cpu"
