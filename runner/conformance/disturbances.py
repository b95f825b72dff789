"""Disturbances that must not change the result of a run: global random streams and clocks."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

OTHER_SEED = 97
CLOCKS = ("time", "monotonic", "perf_counter", "process_time")
CLOCK_SHIFT = 40_000_123.75  # seconds


@contextmanager
def other_global_streams() -> Iterator[None]:
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(OTHER_SEED)
    np.random.seed(OTHER_SEED)
    torch.random.default_generator.manual_seed(OTHER_SEED)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


@contextmanager
def shifted_clocks() -> Iterator[None]:
    """Context in which the clocks of ``time`` are shifted."""
    clocks = {name: getattr(time, name) for name in CLOCKS}
    clocks_ns = {f"{name}_ns": getattr(time, f"{name}_ns") for name in CLOCKS}
    for name, clock in clocks.items():
        setattr(time, name, lambda clock=clock: clock() + CLOCK_SHIFT)
    for name, clock in clocks_ns.items():
        setattr(time, name, lambda clock=clock: clock() + int(CLOCK_SHIFT * 1e9))
    try:
        yield
    finally:
        for name, clock in (clocks | clocks_ns).items():
            setattr(time, name, clock)
