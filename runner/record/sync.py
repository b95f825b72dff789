"""``runner sync``: pushes to MLflow what an unreachable server, or tracking=false, kept from it."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.progress import track

from runner.console import complain, out
from runner.record.record import runs
from runner.record.tracking import Mirror, tracking_uri


def main(argv: list[str]) -> int:
    """Pushes every recorded run, or those named; exit code 1 if the server cannot be reached."""
    parser = argparse.ArgumentParser(prog="runner sync", description="Pushes recorded runs to MLflow.")
    parser.add_argument("run", nargs="*", help="folders of runs (default: every run of the output folder)")
    parser.add_argument("--output-dir", default="outputs", help="where runs are recorded (default: outputs)")
    given = parser.parse_args(argv[1:])
    output_dir = Path(given.output_dir)
    folders = [Path(run) for run in given.run] or runs(output_dir)
    pushed = 0
    for folder in track(folders, "pushing", console=out, disable=not out.is_terminal):
        mirror = Mirror(folder, output_dir)
        if not mirror.push():
            complain(
                f"{tracking_uri(output_dir)}: {mirror.trouble}; {len(folders) - pushed} runs are left for the next runner sync"
            )
            return 1
        pushed += 1
    out.print(f"{pushed} runs are in {tracking_uri(output_dir)}", markup=False)
    return 0
