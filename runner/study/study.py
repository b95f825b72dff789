"""``runner study <name>`` and ``runner rerun --failed <study>``: every run of a table or figure, in
parallel, until done."""

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
from runner.study.display import FAILED, StudyDisplay, describe_states, state, status
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
from runner.terminal.tables import print_json, print_table

HERE = Launcher()  # processes of this machine
UNFINISHED = ("not started", "interrupted", "pruned", "failed", "crashed")  # states of runs to do


def launch(
    snapshot: Snapshot,
    runs: list[FrozenRun],
    jobs: int,
    launcher: Launcher = HERE,
    per_gpu: int = 1,
    budget: TimeBudget | None = None,
) -> int:
    """Runs what is given, here or as jobs of a cluster's engine; the exit code of the command."""
    budget = budget or TimeBudget()
    forecast = Forecast(snapshot, runs, jobs) if launcher.engine is None else None
    if forecast:
        out.print(f"ahead    {forecast.before()}")
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
    out.print(f"study {snapshot.name}: {counts or 'nothing was run'}")
    budget.report_late()
    if executor.left:
        engine = launcher.engine
        out.print(f"{executor.left} continue in the queue of {engine}; --status shows them")
        return 128 + int(executor.stopped_by or 0)
    if executor.stopped_by is not None:
        return 128 + executor.stopped_by
    return 1 if any(display.counts[s] for s in (*FAILED, "interrupted")) else 0


def _parse(argv: list[str]) -> tuple[argparse.Namespace, Launcher]:
    """Words of ``runner study`` and ``runner rerun``, and the launcher that they name.

    Raises:
        ConfigError: one of them is wrong.
    """
    parser = Parser(
        prog=f"runner {argv[0]}",
        description="Runs all runs of a study; done ones are skipped, interrupted ones resumed.",
    )
    add_runs(parser)
    parser.add_argument(
        "--jobs-per-gpu",
        type=int,
        default=1,
        help="runs with device=cuda at once on each GPU (default: 1)",
    )
    parser.add_argument(
        "--failed", action="store_true", help="only runs that failed, diverged or crashed"
    )
    parser.add_argument("--budget", metavar="TIME", help=BUDGET_HELP)
    parser.add_argument(
        "--status",
        action="store_true",
        help="show the state of every run and stop; piped, a line each",
    )
    arguments, launcher = parse_words(parser, argv)
    if argv[0] == "rerun" and not arguments.failed:
        raise ConfigError("rerun: say which runs with --failed")
    if arguments.jobs_per_gpu < 1:
        raise ConfigError(f"--jobs-per-gpu {arguments.jobs_per_gpu}: must be ≥ 1")
    if arguments.budget is not None:
        arguments.budget = parse_budget(arguments.budget)
        if launcher.engine is not None:
            raise ConfigError(
                f"--budget: is time on this machine, and hydra/launcher={launcher.engine} has others; "
                "leave one of them out"
            )
    return arguments, launcher


def _show_status(snapshot: Snapshot, runs: list[FrozenRun], as_json: bool) -> None:
    """Show the state of runs, and of those that cannot be composed."""
    visible_runs = [run for run in snapshot.runs if run.refused or run in runs]

    lines = describe_states(snapshot, visible_runs, SubmittedJobs(snapshot).words)
    if as_json:
        print_json(lines)
    elif out.is_terminal:
        out.print(status(snapshot, visible_runs, lines))
    else:
        print_table("", (), [list(line.values()) for line in lines])


def main(argv: list[str]) -> int:
    """Runs a study (``study``), or the failed runs of one (``rerun --failed``)."""
    arguments, launcher = _parse(argv)
    output_dir = Path(arguments.output_dir).resolve()
    name = arguments.name or Path(arguments.study).stem
    name_flag = f" --as {shlex.quote(arguments.name)}" if arguments.name else ""
    flags = f"{name_flag}{repeat_flags(arguments, *list_named_plugins(arguments))}"
    again = f"runner rerun --failed {shlex.quote(arguments.study)}{flags}"
    rest = f"runner study {shlex.quote(arguments.study)}{flags}"
    if argv[0] == "rerun" and snapshots.load(name, output_dir) is None:
        raise ConfigError(
            f"study {arguments.study} was never launched under {output_dir}; start it with: {rest}"
        )
    snapshot = find_snapshot(arguments, output_dir, arguments.status)
    runs = select_runs(snapshot, arguments.only)
    if arguments.status:
        _show_status(snapshot, runs, arguments.json)
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
        out.print(f"report   runner report {snapshot.name}{repeat_flags(arguments)}")
    refused = len(refused_among(snapshot, arguments.only))
    if refused and code == 0:
        out.print(
            f"refused  {refused} of its runs, which cannot be composed: --status says why",
            style="red",
        )
    return code or int(refused > 0)


def _report_others(going: int, diverged: int, again: str) -> None:
    """Numbers of runs that go on from before, and of those that ``again`` tries again."""
    if going:
        out.print(
            f"         {going} still going from before: they count among these, and are waited for"
        )
    if diverged:
        out.print(f"         {diverged} diverged before: {again} tries them again")


def run_remaining(
    snapshot: Snapshot,
    runs: list[FrozenRun],
    jobs: int,
    launcher: Launcher = HERE,
    per_gpu: int = 1,
    failed: bool = False,
    again: str = "",
    budget: TimeBudget | None = None,
) -> int:
    """Runs what is left to do, after saying what that is; the exit code of the command.

    ``failed``: only what failed; ``again``: the command that does so; ``budget``: only the rows
    that it pays for.
    """
    states = {run.signature: state(snapshot, run) for run in runs}
    states_to_run = FAILED if failed else UNFINISHED
    before = runs_to_await(snapshot, states)
    running_ids = {run.signature for run in before}
    remaining = [
        run
        for run in runs
        if states[run.signature] in states_to_run and run.signature not in running_ids
    ]
    counts = Counter(states.values())
    where = f"as jobs of {launcher.engine}" if launcher.engine else f"{jobs} at a time"
    told = ", ".join(f"{n} {name}" for name, n in counts.items())
    out.print(f"study    {snapshot.name}: {told}; running {len(remaining)}, {where}")
    diverged = 0 if failed else counts["diverged"]
    _report_others(len(before), diverged, again or f"runner rerun --failed {snapshot.name}")
    budget = budget or TimeBudget()
    remaining = budget.choose(snapshot, remaining, jobs)
    if not before and not remaining:
        return 0
    return launch(snapshot, [*before, *remaining], jobs, launcher, per_gpu, budget)
