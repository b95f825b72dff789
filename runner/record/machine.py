"""Machine and user of a run, and disk errors."""

from __future__ import annotations

import errno
import getpass
import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from runner.errors import ConfigError, RunFailure
from runner.record.facts import Facts

# errors of a folder that is not writable
_REFUSAL_ERRNOS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.ENOENT,
    errno.EEXIST,
    errno.ENAMETOOLONG,
)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe_hardware(device: str) -> Facts:
    """Kind of machine, system, processors, and the name of an accelerator."""
    import torch

    facts = {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count()}
    facts["loops"] = torch.backends.cpu.get_cpu_capability()  # AVX2, AVX512
    facts["cpu"] = platform.processor()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                facts["cpu"] = line.split(":", 1)[1].strip()
                break
    if device != "cpu":
        module = torch.get_device_module(device.partition(":")[0])
        read_name = vars(module).get("get_device_name", str)  # "NVIDIA H100", or its name in torch
        facts["gpu"] = str(read_name(device))
    return facts


def find_user() -> str | None:
    """Name of the user; None for an account without a name, as in containers."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return None


def disk_failure(error: OSError, folder: Path) -> RunFailure | ConfigError:
    """Message for an OSError of a run.

    Only an error of the run's record is reported as a failure to write there.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunFailure(
            f"disk full: {folder} cannot be written; free some space, then repeat the command to resume"
        )
    why = error.strerror or str(error)
    ours = folder.absolute()
    named = Path(error.filename or ours).absolute()
    is_ours = named.is_relative_to(ours) or ours.is_relative_to(named)
    if is_ours and error.errno in _REFUSAL_ERRNOS:
        return ConfigError(
            f"output_dir: cannot write to {folder} ({why}); set output_dir=… to a writable folder"
        )
    about = f"{error.filename} ({why})" if error.filename else why
    return RunFailure(
        f"{type(error).__name__}: {about}; fix this, then repeat the command to resume"
    )
