"""Programs that print the CPU seconds until a run has started, or is done."""

from __future__ import annotations

import os
import subprocess
import sys

from scripts.benchmarks.harness import Measured

TORCH = "import time, torch; print(time.process_time())"


FIRST_STEP = """
import os, sys, time

class Hook:  # the function that takes the steps, replaced as soon as its module has been imported
    def find_spec(self, name, path=None, target=None):
        if name == "runner.execution.duties":
            sys.meta_path.remove(self)
            from runner.execution import loop
            loop.steps = steps

def steps(*_):
    print("CPU", time.process_time(), flush=True)
    os._exit(0)

sys.meta_path.insert(0, Hook())
from runner.commands import cli
cli.main()
"""


DONE = """
import sys, time
from runner.commands import cli
try:
    cli.main()
finally:
    print("CPU", time.process_time())
"""


def cpu_seconds(code: str, *arguments: str) -> Measured:
    """CPU seconds that the code prints last, of a process that keeps bytecode, as installed
    packages have it."""
    command = [sys.executable, "-c", code, *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return Measured(result.stdout.split()[-1])
