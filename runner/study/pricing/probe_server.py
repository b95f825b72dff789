"""``python -m runner.study.pricing.probe_server``: probes of runs, each in a child process.

A line of JSON on standard input is a request: ``{"id", "experiment", "config", "seconds"}``;
lines on standard output answer it, the last with ``end``.  Modules are imported once; a child is a
fork, so that memory is its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import warnings
from typing import IO, Any

from runner.record import usage
from runner.study.pricing.probe import limit_cpu, measure, patience

COLD_SECONDS = 30.0  # CPU seconds more that a first miniature may take, to compile
# of a probe's seconds: a first miniature that compiled for longer is measured again
COLD_SHARE = 0.3
BUSY = 4.0  # time by the clock over CPU time, on a machine that others use too


def _answer(request: dict[str, Any], tell: IO[str], again: bool) -> None:
    """Measures one run in this process; a mistake is an answer of one line."""
    try:
        measure(request["config"], request["experiment"], request["seconds"], tell, again)
    except Exception as error:
        line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        tell.write(json.dumps({"error": line}) + "\n")
    tell.flush()


def _serve(request: dict[str, Any], tell: IO[str]) -> None:
    """Measures one run; where the first miniature compiled for long, it is measured a second
    time."""
    seconds = request["seconds"]
    late, spent, samples = _fork(request, tell, again=False)
    if not late and _compiled(samples) > COLD_SHARE * seconds:
        spent += _fork(request, tell, again=True)[1]
    allowed = patience(seconds) if samples else COLD_SECONDS + patience(seconds)
    told = f"took more than {allowed:.0f} s" if late else ""
    _say(tell, request, end=True, late=told, seconds=spent)


def _compiled(samples: list[dict[str, float]]) -> float:
    """CPU seconds that a first miniature took over a longer one, which found what it compiled."""
    if len(samples) < 2:
        return 0.0
    first, second = samples[:2]
    phases = [phase for phase in ("set_up", "training", "evaluations", "final") if second[phase]]
    return sum(first[phase] - second[phase] for phase in phases)


def _fork(
    request: dict[str, Any], tell: IO[str], again: bool
) -> tuple[bool, float, list[dict[str, float]]]:
    """Measures one run in a child process and passes its lines on: whether it was killed for its
    time, its CPU seconds, and the usage of its miniatures."""
    allowed = COLD_SECONDS + patience(request["seconds"])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        limit_cpu(allowed)
        with os.fdopen(writing, "w") as pipe:
            _answer(request, pipe, again)
        os._exit(0)
    os.close(writing)
    ends = time.monotonic() + BUSY * allowed
    samples = []
    poll = select.poll()
    poll.register(reading, select.POLLIN | select.POLLHUP)
    poll.register(sys.stdin.fileno(), 0)  # nobody asks any more: the other end is closed
    with os.fdopen(reading) as pipe:
        while events := dict(poll.poll(1000 * max(0.0, ends - time.monotonic()))):
            if reading not in events:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                sys.exit(1)
            line = pipe.readline()
            if not line:
                break
            facts = json.loads(line)
            samples += [facts["sample"]["usage"]] if "sample" in facts else []
            _say(tell, request, **facts)
        else:
            os.kill(child, signal.SIGKILL)
    _, status, spent = os.wait4(child, 0)
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
    return late, spent.ru_utime + spent.ru_stime, samples


def _say(tell: IO[str], request: dict[str, Any], **facts: Any) -> None:
    tell.write(json.dumps({"id": request["id"], **facts}) + "\n")
    tell.flush()


def main() -> None:
    """Answers requests until standard input ends."""
    from runner.execution.memory import keep_freed_memory

    keep_freed_memory()
    import runner.commands.app
    import runner.compose.config
    import runner.execution.execute  # noqa: F401  # a fork has them

    tell = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.simplefilter("ignore")
    ready = {"start": usage.cpu_now(), "mib": usage.resident_mib()}
    tell.write(json.dumps(ready) + "\n")
    tell.flush()
    for line in sys.stdin:
        _serve(json.loads(line), tell)


if __name__ == "__main__":
    main()
