"""``runner sync``: pushes to MLflow what an unreachable server, or tracking=false, kept from it."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.progress import track

from runner.disk.secrets import mask_secrets
from runner.record.folders import find, runs
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.printer import complain, out
from runner.tracking.mirror import Mirror
from runner.tracking.store import tracking_uri

SECONDS = 300  # for one run


class PushTimeoutError(BaseException):
    """A push takes longer than it may; no error that what pushes could take for one of its own."""


@contextmanager
def push_time_limit(seconds: int) -> Iterator[None]:
    """Context that raises PushTimeoutError when the time is over, in any blocking call."""

    def end(number: int, frame: FrameType | None) -> None:
        raise PushTimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _seconds(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 86400:
        raise argparse.ArgumentTypeError(f"{text}: must be seconds, 1 to 86400")
    return int(text)


def main(argv: list[str]) -> int:
    """Pushes every recorded run, or those named; exit code 1 if the server cannot be reached or a
    record is bad.

    Raises:
        ConfigError: a name is no run.
    """
    parser = Parser(
        prog="runner sync",
        description="Pushes recorded runs to MLflow. A bad record is named, and the others are pushed.",
        epilog="Exit code 0, 1 if the server cannot be reached or a record is bad, 2 for a mistake.",
    )
    parser.add_argument(
        "run",
        nargs="*",
        help="folders or signatures of runs (default: every run of the output folder)",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=SECONDS,
        help=f"seconds that one run may take (default: {SECONDS})",
    )
    add_output_dir(parser, must_exist=True)
    arguments = parser.parse_args(argv[1:])
    output_dir = Path(arguments.output_dir)
    folders = [find(run, output_dir) for run in arguments.run] or runs(output_dir)
    if not folders:
        out.print(f"no runs under {output_dir}")
        return 0
    masked_uri = mask_secrets(tracking_uri(output_dir))
    client = None
    pushed = 0
    bad = list[str]()
    for folder in track(folders, "pushing", console=out, disable=not out.is_terminal):
        remainder = f"{_runs(len(folders) - pushed - len(bad))} left for the next runner sync"
        mirror = Mirror(folder, output_dir, client, max(1, arguments.timeout - 1))
        try:
            with push_time_limit(arguments.timeout):
                is_pushed = mirror.push()
        except PushTimeoutError:
            complain(
                f"MLFLOW_TRACKING_URI={masked_uri}: {folder} was not in after {arguments.timeout} s (--timeout); {remainder}"
            )
            return 1
        if is_pushed:
            pushed += 1
        elif mirror.unreachable:
            complain(f"MLFLOW_TRACKING_URI={masked_uri}: {mirror.trouble}; {remainder}")
            return 1
        else:
            bad.append(f"{folder}: {mirror.trouble}")
        client = mirror.client
    out.print(f"{_runs(pushed)} in {masked_uri}")
    if bad:
        complain("\n".join([*bad, f"{_runs(len(bad))} left out"]))
    return 1 if bad else 0


def _runs(n: int) -> str:
    return f"{n} run is" if n == 1 else f"{n} runs are"
