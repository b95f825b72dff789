"""``runner study <name>`` and ``runner rerun --failed <study>``: execute all runs of a table or
figure in parallel."""

from __future__ import annotations

import argparse
import math
import shlex
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from runner.errors import ConfigError
from runner.study import snapshot as snapshots
from runner.study.choice import refused_among, select_runs
from runner.study.cluster.job_queue import JobQueue, SubmittedJobs
from runner.study.cluster.launcher import Launcher
from runner.study.display import FAILED, RunLine, StudyDisplay, describe_states, print_status, state
from runner.study.executor import Executor
from runner.study.find_snapshot import find_snapshot
from runner.study.job_pool import GpuSlots, JobPool
from runner.study.left_going import runs_to_await
from runner.study.pricing.budget import BUDGET_HELP, TimeBudget, parse_budget
from runner.study.pricing.study_records import Forecast
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.study_arguments import (
    add_runs,
    list_named_plugins,
    parse_words,
    repeat_flags,
)
from runner.terminal.arguments import Parser
from runner.terminal.printer import out
from runner.terminal.tables import print_named, print_table

LOCAL = Launcher()  # processes on this machine
# states of unfinished runs
UNFINISHED = ("not started", "interrupted", "pruned", "failed", "crashed")


def launch(
    snapshot: Snapshot,
    runs: list[FrozenRun],
    jobs: int,
    launcher: Launcher,
    per_gpu: int,
    budget: TimeBudget,
) -> int:
    """Execute runs on this machine or as jobs of a cluster engine; return the exit code."""
    forecast = Forecast(snapshot, runs, jobs) if launcher.engine is None else None
    if forecast:
        print_named("ahead", forecast.before())
    display = StudyDisplay(snapshot, len(runs), forecast)
    executor: Executor
    if launcher.engine is None:
        executor = JobPool(
            snapshot,
            display.report_end,
            display.poll,
            jobs=jobs,
            gpus=GpuSlots(per_gpu),
            drop_late=budget.drop_late,
        )
    else:
        executor = JobQueue(snapshot, display.report_end, display.poll, launcher=launcher)
    with display.live or nullcontext():
        executor.go(runs)
    counts = ", ".join(f"{n} {name}" for name, n in display.counts.items())
    out.print(f"study {snapshot.name}: {counts or 'no run was started'}")
    budget.report_late()
    if executor.left:
        engine = launcher.engine
        out.print(f"{executor.left} jobs continue in the queue of {engine}; --status shows them")
        return 128 + int(executor.stopped_by or 0)
    if executor.stopped_by is not None:
        return 128 + executor.stopped_by
    return int(any(display.counts[s] for s in (*FAILED, "interrupted")))


def _parse(argv: list[str]) -> tuple[argparse.Namespace, Launcher]:
    """Parse the arguments of ``runner study`` and ``runner rerun``, including the launcher.

    Raises:
        ConfigError: an argument is invalid.
    """
    parser = Parser(
        description="Execute all runs of a study; finished runs are skipped, interrupted ones resumed.",
    )
    add_runs(parser)
    meaning = "number of parallel runs with device=cuda on each GPU (default: 1)"
    parser.add_count("--jobs-per-gpu", meaning, 1)
    parser.add_argument(
        "--failed", action="store_true", help="only runs that failed, diverged or crashed"
    )
    parser.add_argument("--budget", metavar="TIME", help=BUDGET_HELP)
    parser.add_argument(
        "--status",
        action="store_true",
        help="show the state of every run and exit; in a pipe, one run per line",
    )
    arguments, launcher = parse_words(parser, argv)
    if argv[0] == "rerun" and not arguments.failed:
        raise ConfigError("rerun: --failed is required; add it")
    if arguments.budget is not None:
        arguments.budget = parse_budget(arguments.budget)
        if launcher.engine is not None:
            raise ConfigError(
                f"--budget: supports only this machine, not hydra/launcher={launcher.engine}; "
                "remove one of them"
            )
    return arguments, launcher


def _show_status(snapshot: Snapshot, runs: list[FrozenRun]) -> None:
    """Show the states of runs, including those that cannot be composed."""
    visible_runs = [run for run in snapshot.runs if run.refused or run in runs]
    lines = describe_states(snapshot, visible_runs, SubmittedJobs(snapshot).words)
    if out.is_terminal:
        print_status(snapshot, visible_runs, lines)
    else:
        keys = tuple(RunLine.__annotations__)
        print_table("", keys, [list(map(str, line.values())) for line in lines])


def main(argv: list[str]) -> int:
    """Execute a study (``study``), or the failed runs of a study (``rerun --failed``)."""
    arguments, launcher = _parse(argv)
    output_dir = arguments.output_dir.resolve()
    name = arguments.name or Path(arguments.study).stem
    name_flag = f" --as {shlex.quote(arguments.name)}" if arguments.name else ""
    flags = f"{name_flag}{repeat_flags(arguments, *list_named_plugins(arguments))}"
    words = shlex.join([arguments.study, *arguments.overrides])
    again = f"runner rerun --failed {words}{flags}"
    rest = f"runner study {words}{flags}"
    if argv[0] == "rerun" and snapshots.load(name, output_dir) is None:
        raise ConfigError(
            f"study {arguments.study} was never launched under {output_dir}; start it with: {rest}"
        )
    snapshot = find_snapshot(arguments, output_dir, arguments.status)
    runs = select_runs(snapshot, arguments.only)
    if arguments.status:
        _show_status(snapshot, runs)
        return 0
    budget = TimeBudget(arguments.budget or math.inf, arguments.probe_seconds, rest)
    code = run_remaining(
        snapshot,
        runs,
        arguments.jobs,
        launcher,
        arguments.jobs_per_gpu,
        arguments.failed,
        again,
        budget,
    )
    if code <= 1:
        print_named("report", f"runner report {snapshot.name}{repeat_flags(arguments)}")
    refused = len(refused_among(snapshot, arguments.only))
    if refused and code == 0:
        out.print(
            f"refused  {refused} runs that cannot be composed; --status shows the reasons",
            style="red",
        )
    return code or int(refused > 0)


def run_remaining(
    snapshot: Snapshot,
    runs: list[FrozenRun],
    jobs: int,
    launcher: Launcher = LOCAL,
    per_gpu: int = 1,
    failed: bool = False,
    again: str = "",
    budget: TimeBudget | None = None,
) -> int:
    """Print a summary and execute the remaining runs; return the exit code.

    ``failed`` selects failed runs, ``again`` is the command that retries them, and ``budget``
    selects rows within a budget.
    """
    states = {run.signature: state(snapshot, run) for run in runs}
    states_to_run = FAILED if failed else UNFINISHED
    active_runs = runs_to_await(snapshot, states)
    running_ids = {run.signature for run in active_runs}
    remaining = [
        run
        for run in runs
        if states[run.signature] in states_to_run and run.signature not in running_ids
    ]
    counts = Counter(states.values())
    where = f"as jobs of {launcher.engine}" if launcher.engine else f"{jobs} in parallel"
    summary = ", ".join(f"{n} {name}" for name, n in counts.items())
    print_named("study", f"{snapshot.name}: {summary}; running {len(remaining)}, {where}")
    if active_runs:
        out.print(f"         {len(active_runs)} of these are still running from an earlier command")
    if counts["diverged"] and not failed:
        again = again or f"runner rerun --failed {snapshot.name}"
        out.print(f"         {counts['diverged']} diverged earlier; retry them with {again}")
    budget = budget or TimeBudget()
    remaining = budget.choose(snapshot, remaining, jobs)
    if not active_runs and not remaining:
        return 0
    return launch(snapshot, [*active_runs, *remaining], jobs, launcher, per_gpu, budget)
