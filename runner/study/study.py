"""``runner study <name>`` and ``runner rerun --failed <study>``: every run of a table or figure, in
parallel, until done."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.catalogue import plugins
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.study import snapshot as snapshots
from runner.study.choice import ONLY_HELP, refused_among, select_runs
from runner.study.definition import load_study
from runner.study.display import FAILED, StudyDisplay, describe_states, state, status
from runner.study.forecast import Forecast
from runner.study.job_pool import JobPool
from runner.study.job_queue import JobQueue, submitted_jobs, words
from runner.study.launcher import Launcher
from runner.study.launcher import split_launcher as chosen_launcher
from runner.study.left_going import runs_to_await
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.arguments import Parser, add_json, add_output_dir
from runner.terminal.printer import announce, out, show_count
from runner.terminal.tables import print_json, print_table

HERE = Launcher()  # processes of this machine
SHOWN = 8  # refused runs that are printed


def launch(
    snapshot: Snapshot,
    runs: list[FrozenRun],
    jobs: int,
    launcher: Launcher = HERE,
    per_gpu: int = 1,
) -> int:
    """Runs what is given, here or as jobs of a cluster's engine; the exit code of the command."""
    forecast = Forecast(snapshot, runs, jobs) if launcher.engine is None else None
    if forecast:
        out.print(f"ahead    {forecast.before()}")
    display = StudyDisplay(snapshot, len(runs), forecast)
    executor: JobPool | JobQueue
    if launcher.engine is None:
        executor = JobPool(snapshot, jobs, display.report_end, display.poll, per_gpu=per_gpu)
    else:
        executor = JobQueue(snapshot, launcher, display.report_end, display.poll)
    if display.live:
        display.live.start()
    try:
        executor.go(runs)
    finally:
        if display.live:
            display.live.stop()
    counts = ", ".join(f"{n} {name}" for name, n in display.counts.items())
    out.print(f"study {snapshot.name}: {counts or 'nothing was run'}")
    if isinstance(executor, JobQueue) and executor.left:
        see = f"see them with: runner study {snapshot.name} --status"
        out.print(f"{executor.left} go on in the queue of {launcher.engine}; {see}")
        return 128 + int(executor.stopped_by or 0)
    if executor.stopped_by is not None:
        out.print(f"stopped; go on with: runner study {snapshot.name}")
        return 128 + executor.stopped_by
    return 1 if any(display.counts[s] for s in (*FAILED, "interrupted")) else 0


def repeat_flags(given: argparse.Namespace) -> str:
    """Flags that a further command about the study's records has to repeat."""
    flags = ""
    if given.output_dir != "outputs":
        flags += f" --output-dir {given.output_dir}"
    if given.config_dir:
        flags += f" --config-dir {given.config_dir}"
    return flags


def list_named_plugins(given: argparse.Namespace) -> list[str]:
    """The plug-ins that the command line names itself: by --plugin, or as an override of every
    run."""
    typed = [
        text.partition("=")[2].strip("[]").split(",")
        for text in given.overrides
        if text.startswith("plugins=")
    ]
    return [
        *given.plugin,
        *(module.strip() for modules in typed for module in modules if module.strip()),
    ]


def _has_changed(study: str, found: Snapshot) -> bool:
    """True if the study's YAML has changed since it was frozen."""
    try:
        return load_study(study) != found.study
    except ConfigError:  # its file is gone, or it is asked for by the name of its snapshot
        return False


def _snapshot(given: argparse.Namespace, output_dir: Path) -> Snapshot:
    """Snapshot of the study, taken now if there is no earlier one."""
    name = given.name or Path(given.study).stem
    old_snapshot = None if given.fresh else snapshots.load(name, output_dir)
    if old_snapshot is not None:
        _check_old_snapshot(old_snapshot, given, name)
        return old_snapshot
    snapshot = snapshots.take(
        load_study(given.study),
        name,
        given.overrides,
        output_dir,
        list_named_plugins(given),
        watch_composing,
    )
    snapshots.refuse_unknown_scores(snapshot)
    refused = [run for run in snapshot.runs if run.refused]
    if refused:
        lines = [f"{run.name}: {run.refused}" for run in refused[:SHOWN]]
        more = [f"… and {len(refused) - SHOWN} more"] if len(refused) > SHOWN else []
        announce(
            f"{len(refused)} of {len(snapshot.runs)} runs cannot be composed and are left out",
            "\n".join([*lines, *more, "Once they can be: --fresh."]),
        )
    select_runs(snapshot, given.only)  # a misspelt --only costs only the time to report it
    if not given.status:
        snapshots.save(snapshot)
        out.print(f"frozen   {snapshots.location(name, output_dir)}: {len(snapshot.runs)} runs")
    return snapshot


def _check_old_snapshot(snapshot: Snapshot, given: argparse.Namespace, name: str) -> None:
    """Check that a study can go on as it was frozen.

    Raises:
        ConfigError: the command line has other overrides, or lacks a plug-in.
    """
    if given.overrides and given.overrides != snapshot.extra:
        raise ConfigError(
            f"study {name} was frozen with {' '.join(snapshot.extra) or 'no overrides'}; "
            f"give another name (--as …), or take a new snapshot (--fresh)"
        )
    if _has_changed(given.study, snapshot):
        out.print(
            f"note     {given.study} has changed since it was frozen ({snapshot.taken}); it goes on as it was, "
            "--fresh takes the new one",
        )
    if not given.status:
        foreign = set(snapshot.plugins) - set(list_named_plugins(given))
        snapshots.refuse_unnamed_plugins(foreign, name)


def watch_composing(runs: list[Any]) -> Iterator[Any]:
    """Runs, with a line on the terminal about how many are composed."""
    for i, run in enumerate(runs, 1):
        show_count("composing", i, len(runs))
        yield run


def _parse(argv: list[str]) -> tuple[argparse.Namespace, Launcher]:
    """The words of the command line and the launcher that they name.

    Raises:
        ConfigError: one of them is wrong.
    """
    parser = Parser(
        prog=f"runner {argv[0]}",
        description="Runs all runs of a study; done ones are skipped, interrupted ones resumed.",
    )
    parser.add_argument("study", help="name of a file in conf/study, or a path to one")
    parser.add_argument(
        "overrides",
        nargs="*",
        help="overrides of every run, and hydra/launcher=slurm, ray or joblib, split=replicates",
    )
    parser.add_argument("--jobs", type=int, help="runs at once (default: one per core)")
    parser.add_argument(
        "--jobs-per-gpu",
        type=int,
        default=1,
        help="runs with device=cuda at once on each GPU (default: 1)",
    )
    parser.add_argument(
        "--failed", action="store_true", help="only runs that failed, diverged or crashed"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help=ONLY_HELP,
    )
    parser.add_argument(
        "--as", dest="name", help="name of the snapshot and the report (default: the study's)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="freeze the YAML anew (what is done stays done)"
    )
    parser.add_argument(
        "--status",
        action="store_true",
        help="show the state of every run and stop; piped, a line each",
    )
    add_json(parser)
    add_output_dir(parser)
    conf_folders.add_option(parser)
    plugins.add_option(parser, "a module of yours that every run imports")
    arguments = parser.parse_intermixed_args(argv[1:])
    conf_folders.use(arguments.config_dir)
    if argv[0] == "rerun" and not arguments.failed:
        raise ConfigError("rerun: say which runs with --failed")
    launcher, arguments.overrides = chosen_launcher(arguments.overrides)
    for word in arguments.overrides:
        key, _, value = word.lstrip("+").partition("=")
        if key == "output_dir":  # a run has it as a key; here every run gets it
            raise ConfigError(
                f"{word}: where a study records its runs is said by --output-dir {value}"
            )
    if arguments.name is not None:
        if arguments.name:
            inside(Path(), arguments.name, "--as")
        if not arguments.name or "/" in arguments.name:
            raise ConfigError(
                f"--as {arguments.name!r}: no name of a folder; give a plain one, such as {Path(arguments.study).stem}_2"
            )
    if arguments.jobs is None:
        arguments.jobs = launcher.jobs or os.cpu_count() or 1
    for flag, number in (("--jobs", arguments.jobs), ("--jobs-per-gpu", arguments.jobs_per_gpu)):
        if number < 1:
            raise ConfigError(f"{flag} {number}: must be ≥ 1")
    return arguments, launcher


def _show_status(snapshot: Snapshot, runs: list[FrozenRun], as_json: bool) -> None:
    """Show the state of runs, and of those that cannot be composed."""
    jobs = submitted_jobs(snapshot)
    visible_runs = [run for run in snapshot.runs if run.refused or run in runs]

    def state_in_words(run: FrozenRun, state: str) -> str:
        return words(snapshot, run, state, jobs)

    if out.is_terminal and not as_json:
        out.print(status(snapshot, visible_runs, state_in_words))
        return
    lines = describe_states(snapshot, visible_runs, state_in_words)
    if as_json:
        print_json(lines)
    else:
        print_table("", (), [[str(word) for word in line.values()] for line in lines])


def main(argv: list[str]) -> int:
    """Runs a study (``study``), or the failed runs of one (``rerun --failed``)."""
    arguments, launcher = _parse(argv)
    output_dir = Path(arguments.output_dir).resolve()
    name = arguments.name or Path(arguments.study).stem
    if argv[0] == "rerun" and snapshots.load(name, output_dir) is None:
        raise ConfigError(
            f"study {arguments.study} was never launched under {output_dir}; start it with: runner study {arguments.study}"
        )
    snapshot = _snapshot(arguments, output_dir)
    runs = select_runs(snapshot, arguments.only)
    if arguments.status:
        _show_status(snapshot, runs, arguments.json)
        return 0
    again = f"runner rerun --failed {arguments.study}"
    code = run_remaining(
        snapshot, runs, arguments.jobs, launcher, arguments.jobs_per_gpu, arguments.failed, again
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


def run_remaining(
    snapshot: Snapshot,
    runs: list[FrozenRun],
    jobs: int,
    launcher: Launcher = HERE,
    per_gpu: int = 1,
    failed: bool = False,
    again: str = "",
) -> int:
    """Runs what is left to do, after saying what that is; the exit code of the command.

    ``failed``: only what failed; ``again``: the command that does so.
    """
    states = {run.signature: state(snapshot, run) for run in runs}
    states_to_run = (
        FAILED if failed else ("not started", "interrupted", "pruned", "failed", "crashed")
    )
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
    if before:
        out.print(
            f"         {len(before)} still going from before: they count among these, and are waited for"
        )
    if counts["diverged"] and not failed:
        command = again or f"runner rerun --failed {snapshot.name}"
        out.print(f"         {counts['diverged']} diverged before: {command} tries them again")
    if not before and not remaining:
        return 0
    return launch(snapshot, [*before, *remaining], jobs, launcher, per_gpu)
