"""``runner sync``: upload records that MLflow lacks (unreachable server or tracking=false)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import track

from runner.disk.secrets import mask_secrets
from runner.record.folders import find, runs
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.handlers import handle_signals
from runner.terminal.printer import complain, out
from runner.tracking.mirror import Mirror
from runner.tracking.store import tracking_uri

SECONDS = 300  # timeout per run


class PushTimeoutError(BaseException):
    """Timeout of a push; not a subclass of Exception, so that MLflow's code does not catch it."""


@contextmanager
def push_time_limit(seconds: int) -> Iterator[None]:
    """Context that raises PushTimeoutError after a time limit, even in a blocking call."""

    def end(number: int, frame: FrameType | None) -> None:
        raise PushTimeoutError

    with handle_signals(end, signal.SIGALRM):
        signal.alarm(seconds)
        try:
            yield
        finally:
            signal.alarm(0)


def main(argv: list[str]) -> int:
    """Upload all recorded runs or the given ones; return 1 if the server is not reachable or a
    record is invalid.

    Raises:
        ConfigError: a run does not exist.
    """
    parser = Parser(
        description="Upload recorded runs to MLflow. Invalid records are reported; all others are uploaded.",
        epilog="Exit code 0, 1 if the server is not reachable or a record is invalid, 2 for invalid arguments.",
    )
    parser.add_argument(
        "run",
        nargs="*",
        help="folders or signatures of runs (default: all runs in the output folder)",
    )
    meaning = f"time limit per run in seconds (default: {SECONDS})"
    parser.add_count("--timeout", meaning, SECONDS, most=86400)
    add_output_dir(parser, must_exist=True)
    arguments = parser.parse(argv)
    output_dir = arguments.output_dir
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
                f"MLFLOW_TRACKING_URI={masked_uri}: {folder} not uploaded after {arguments.timeout} s (--timeout); {remainder}"
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
        complain("\n".join([*bad, f"{_runs(len(bad))} skipped"]))
    return 1 if bad else 0


def _runs(n: int) -> str:
    return f"{n} run is" if n == 1 else f"{n} runs are"
