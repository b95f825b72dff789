"""A device ``standin``: the CPU's memory and arithmetic, which refuses operations on tensors of two
devices as a GPU does (``stand_in.cpp``).

Compiled at first use, in about 30 s, with the machine's C++ compiler; the library is kept in
``build/``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import types
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import include_paths, library_paths

NAME = "standin"
SOURCE = Path(__file__).with_name("stand_in.cpp")
BUILD = Path(__file__).parent.parent.parent / "build" / "stand_in"
NO_COMPILER = (
    "no C++ compiler was found (c++ on PATH, or CXX): the stand-in for a GPU cannot be built"
)


class BuildError(Exception):
    """The compiler failed."""


class NoCompilerError(Exception):
    """This machine has no compiler."""


def find_compiler() -> str | None:
    """Path of the C++ compiler, or None."""
    return shutil.which(os.environ.get("CXX", "c++"))


@cache
def build() -> Path:
    """Compile the library unless it exists for this source and this torch version.

    Raises:
        NoCompilerError: no compiler is installed.
        BuildError: the compilation fails.
    """
    compiler = find_compiler()
    if compiler is None:
        raise NoCompilerError(NO_COMPILER)
    digest = hashlib.sha256(SOURCE.read_bytes() + torch.__version__.encode()).hexdigest()[:16]
    library = BUILD / f"stand_in_{digest}.so"
    if library.is_file():
        return library
    BUILD.mkdir(parents=True, exist_ok=True)
    unfinished = library.with_suffix(f".{os.getpid()}")  # another process may compile it too
    command = [compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-w", str(SOURCE)]
    command += [f"-I{path}" for path in include_paths()]
    for path in library_paths():
        command += [f"-L{path}", f"-Wl,-rpath,{path}"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    command += ["-lc10", "-ltorch_cpu", "-ltorch", "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{compiler} failed on {SOURCE.name}: {done.stderr.strip()[:2000]}")
    unfinished.rename(library)
    return library


@cache
def load() -> torch.device:
    """The device, registered with torch: from then on ``device="standin"`` works everywhere.

    It must be loaded before the first gradient of a process: autograd starts one thread for each
    kind of device that is registered by then.

    Raises:
        NoCompilerError, BuildError: the device cannot be compiled.
    """
    torch.ops.load_library(str(build()))
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _make_module())
    # module.to(device) would otherwise create new parameters and separate shared weights
    torch.__future__.set_swap_module_params_on_conversion(True)
    nn.Module.load_state_dict = _load_in_place  # type: ignore[method-assign]
    torch.utils.generate_methods_for_privateuse1_backend()
    return torch.device(NAME)


LOAD = nn.Module.load_state_dict


def _load_in_place(self: nn.Module, *args: Any, **keys: Any) -> Any:
    """Convert without swapping tensors, which nn.LSTM's weak references forbid."""
    torch.__future__.set_swap_module_params_on_conversion(False)
    try:
        return LOAD(self, *args, **keys)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(True)


def waits() -> dict[str, int]:
    """Operations since ``clear_waits`` that would have synchronised a GPU with its host, by
    name."""
    return dict(torch.ops.standin.waits())


def clear_waits() -> None:
    """Reset the counter."""
    torch.ops.standin.clear_waits()


def set_float64(value: bool) -> None:
    """Allow or refuse float64; some accelerators do not support it."""
    torch.ops.standin.set_float64(value)


def _make_module() -> types.ModuleType:
    """Module of device functions that torch requires."""
    module = types.ModuleType(f"torch.{NAME}")
    answers = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "_is_in_bad_fork": lambda: False,
        "manual_seed_all": torch.ops.standin.seed,
        "get_rng_state": lambda device=None: torch.ops.standin.read_state(),
        "set_rng_state": lambda state, device=None: torch.ops.standin.write_state(state),
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
    }
    vars(module).update(answers)
    return module
