"""``python -m runner.study.pricing.probe <snapshot> <run> <seconds>``: miniatures of a run, one
after the other in one process, each with an ordinary record.

A small first one pays for imports, compilation and caches; then two lengths n₁ < n₂, chosen so
that the training of the last takes a share of ``seconds``.  The process ends itself when it has
taken too many CPU seconds.
"""

from __future__ import annotations

import resource
import sys
from typing import Any

from runner.study.pricing.miniature import FEWEST_STEPS, choose_axis, shrink

TRAINING_SHARE = 0.4  # of a probe's seconds: training of its longest miniature
WHOLE_SHARE = 0.8  # of a probe's seconds: a training that is shorter is not shortened
MIDDLE = 4  # the miniature in the middle trains for that part of the longest one's time
LEAP = 32  # the second miniature has at most that many times the steps of the first
NO_TIME = 1e-7  # seconds
COLD_SECONDS = 30  # CPU seconds more that a probe may take, to import and compile
PATIENCE = 6  # CPU seconds that it may take, over its seconds


def limit(seconds: float) -> int:
    """CPU seconds that a probe may take."""
    return COLD_SECONDS + round(PATIENCE * seconds)


def next_size(sizes: list[int], whole: int, usage: dict[str, float], seconds: float) -> int:
    """Size of the next miniature; 0: enough is known.  ``usage`` is that of the last one."""
    size = sizes[-1]
    rest = usage["cpu_seconds"] - usage["start"] - usage["training"]
    if size == whole or len(sizes) == 3 or (len(sizes) == 2 and rest > seconds):
        return 0
    each = max(usage["training"] / size, NO_TIME)
    if whole * each < WHOLE_SHARE * seconds and (len(sizes) == 2 or whole <= LEAP * size):
        return whole
    target = TRAINING_SHARE * seconds
    if len(sizes) == 2:
        return 0 if usage["training"] > target else min(whole, max(int(target / each), 2 * size))
    return min(whole, LEAP * size, max(int(target / MIDDLE / each), 2 * size))


def _run(config: dict[str, Any], experiment: str) -> dict[str, float]:
    """Runs a miniature; its usage."""
    from omegaconf import OmegaConf

    from components.errors import NumericalError
    from runner.compose.config import prepare
    from runner.execution.execute import Run

    run = Run(prepare(OmegaConf.create(config), experiment, None))
    try:
        run.go(signals=False)
    except NumericalError:  # scores of so few steps need not be finite
        if not run.record.facts["finished"]:
            raise
    usage: dict[str, float] = run.record.facts["usage"]
    return usage


def main(argv: list[str]) -> int:
    """Measures one run; an error is one line."""
    from runner.execution.memory import keep_freed_memory
    from runner.record.usage import claim_process
    from runner.study.one_run import load_job
    from runner.terminal.printer import complain

    claim_process()
    seconds = float(argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (limit(seconds), resource.RLIM_INFINITY))
    try:
        study, run, _, job = load_job(argv)
        keep_freed_memory()
        axis = choose_axis(job)
        whole = getattr(job.settings, axis) if axis != "nothing" else 1
        sizes = [{"steps": FEWEST_STEPS, "replicates": whole // 8}.get(axis, whole) or 1]
        folder = study.output_dir / run.signature
        while sizes[-1]:
            config = shrink(job, axis, sizes[-1])
            usage = _run(config | {"output_dir": str(folder)}, run.experiment)
            sizes.append(next_size(sizes, whole, usage, seconds))
    except Exception as error:
        line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        complain(line)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
