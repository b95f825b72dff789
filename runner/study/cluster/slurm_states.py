"""States of Slurm's jobs, as ``squeue`` prints them: with and without accounting.

The controller forgets a job some minutes (``MinJobAge``) after its end, an element of an array that
never began immediately.  A job that a controller which answers does not know has therefore ended.
"""

from __future__ import annotations

import math
import subprocess
import time

from runner.terminal.printer import out

FORGOTTEN = "FORGOTTEN"  # ended, and squeue no longer says how
CAUSES = {
    "CANCELLED": "cancelled, by scancel or an administrator",
    "TIMEOUT": "its time was up (hydra.launcher.timeout_min), and it was not put back into the queue",
    "OUT_OF_MEMORY": "out of memory (hydra.launcher.mem_gb)",
    "NODE_FAIL": "its node failed, and Slurm did not put it back into the queue",
    "PREEMPTED": "preempted, and not put back into the queue: PreemptMode=REQUEUE of the partition",
    "DEADLINE": "its deadline has passed",
    "BOOT_FAIL": "its node did not boot",
    "FAILED": "its process failed, as submitit's log of it says",
    "COMPLETED": "it ended without a result",
    FORGOTTEN: "it is no longer in Slurm's queue: cancelled, or ended some time ago",
}
ENDED = set(CAUSES)
SQUEUE_FORMAT = "%i|%T"
INVALID = "Invalid job id"  # squeue's answer where the one job that it is asked for is forgotten
SECONDS_OF_ONE_CALL = 60
SHORTEST_INTERVAL, LONGEST_INTERVAL = 2.0, 30.0  # seconds between calls


def explain_end(state: str) -> str:
    """Cause of a job's end, in words."""
    return f"{state}: {CAUSES[state]}" if state in CAUSES else state


class SlurmStates:
    """States of all jobs of a study, by one call for all of them.

    Calls are 2 s apart at first and then a tenth of the time since the last job was added, at most
    30 s.  A controller that does not answer leaves the last states, and is reported once,
    until it has answered again.
    """

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._waiting: set[str] = set()  # jobs that have not ended
        self._is_silent = False
        self._added = self._asked = -math.inf

    def state(self, job: str) -> str:
        """State of a job; ``PENDING`` before Slurm has answered."""
        now = time.monotonic()
        if job not in self._waiting and self._states.get(job) not in ENDED:
            self._waiting.add(job)
            self._added = now
            if job not in self._states:
                self._states[job] = "PENDING"
                self._asked = -math.inf
        interval = min(LONGEST_INTERVAL, max(SHORTEST_INTERVAL, (now - self._added) / 10))
        if job in self._waiting and now - self._asked > interval:
            self._states |= self._ask(self._waiting)
            self._waiting = {one for one in self._waiting if self._states[one] not in ENDED}
            self._asked = time.monotonic()
        return self._states[job]

    def _ask(self, jobs: set[str]) -> dict[str, str]:
        """States of ``jobs``, and of others of their arrays; empty without an answer."""
        numbers = ",".join(sorted({job.partition("_")[0] for job in jobs}))
        command = ["squeue", "--array", "--states=all", "--noheader", f"--jobs={numbers}"]
        try:
            done = _call([*command, f"--format={SQUEUE_FORMAT}"])
        except (OSError, subprocess.TimeoutExpired):
            return self._report_silence("squeue is not on the PATH, or is too slow")
        if done.returncode != 0 and INVALID not in done.stderr:
            return self._report_silence((done.stderr.strip().splitlines() or ["no message"])[-1])
        self._is_silent = False
        rows = (line.partition("|") for line in done.stdout.splitlines())
        return dict.fromkeys(jobs, FORGOTTEN) | {job: state for job, _, state in rows}

    def _report_silence(self, message: str) -> dict[str, str]:
        if not self._is_silent:
            out.print(f"note     Slurm does not answer: {message}; its jobs go on", style="yellow")
        self._is_silent = True
        return {}


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_OF_ONE_CALL)
