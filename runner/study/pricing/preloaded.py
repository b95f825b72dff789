"""Imports of a run.

The fork server of probes imports this module, so that none of its processes has to.
"""

from __future__ import annotations

import os

from runner.execution.memory import keep_freed_memory
from runner.record import usage
from runner.study.job_pool import THREAD_VARIABLES

os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # thread pools read them on import
keep_freed_memory()

import runner.commands.app  # noqa: E402
import runner.compose.config  # noqa: E402
import runner.execution.execute  # noqa: E402, F401

START = usage.cpu_now()  # CPU seconds that these imports took
MIB = usage.resident_mib()  # memory with them
