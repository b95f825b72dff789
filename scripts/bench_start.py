"""How soon a smoke run begins to learn, against ``import torch`` alone; and how soon a run that is
done says so.

CPU seconds (user and system, one thread) from the start of the process to the first step of
inference.  Nothing can be learnt without torch, so the ratio is below 1: the goal is 1/1.3 for
every family.  A run that is done imports no torch."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile

FAMILIES = ["friend_or_foe", "wiener_velocity", "mog", "multitask_toy", "digits_fgsm", "vae_digits"]
ROUNDS = 5
GOAL = 1 / 1.3
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
from runner import cli
cli.main()
"""
DONE = """
import sys, time
from runner import cli
try:
    cli.main()
finally:
    print("CPU", time.process_time())
"""


def seconds(code: str, *argv: str) -> float:
    """CPU seconds that the code prints last."""
    result = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True
    )
    return float(result.stdout.split()[-1])


def main() -> None:
    ratios: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        overrides = ["smoke=true", "offline=true", "tracking=false"]
        command = ["+experiment=friend_or_foe", *overrides, f"output_dir={folder}/done"]
        seconds(DONE, *command)
        for i in range(ROUNDS):
            torch = seconds(TORCH)
            for name in FAMILIES:
                began = seconds(
                    FIRST_STEP, f"+experiment={name}", *overrides, f"output_dir={folder}/{i}"
                )
                ratios.setdefault(f"first step, {name}", []).append(torch / began)
            ratios.setdefault("done already", []).append(torch / seconds(DONE, *command))
    spread = {case: [statistics.median(r), min(r), max(r)] for case, r in ratios.items()}
    for case, (median, low, high) in spread.items():
        print(f"{case:<32} {median:.2f} ({low:.2f} to {high:.2f}) of the time of importing torch")
    goals = {case: GOAL if case.startswith("first") else 1.0 for case in spread}
    print(
        json.dumps({"benchmark": "start", "peer": "import torch", "ratios": spread, "goals": goals})
    )


if __name__ == "__main__":
    main()
