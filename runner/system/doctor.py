"""``runner doctor``: the environment that a run would find here.

Each line is ok, absent (data files), warning or problem, with the fix.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sqlite3
import urllib.request
from dataclasses import asdict
from pathlib import Path

from components.errors import DamagedFileError
from components.memory import GIB
from runner.disk.secrets import mask_secrets
from runner.record.facts import read
from runner.record.files import find_damage
from runner.record.folders import runs
from runner.system.machine import (
    Finding,
    Findings,
    Level,
    memory,
    packages,
    python,
    threads,
    torch_and_gpu,
)
from runner.terminal.arguments import Parser, add_json, add_output_dir, existing_folder
from runner.terminal.tables import print_fact, print_json, print_marked
from runner.tracking.schema import check_schema
from runner.tracking.store import database_file, tracking_uri

COLOURS: dict[Level, str] = {"ok": "green", "absent": "cyan", "warning": "yellow", "problem": "red"}


def outputs(output_dir: Path) -> Findings:
    """That records can be written, and how much room there is."""
    folder = output_dir
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        mend = "make it writable, or set output_dir=… to a folder that is"
        yield Finding("problem", "outputs", f"{output_dir} cannot be written", mend)
        return
    free = shutil.disk_usage(folder).free
    detail = f"{output_dir}, {free / GIB:.1f} GiB free" + (
        "" if output_dir.exists() else "; will be made"
    )
    mend = "free some space, or set output_dir=… to another disk"
    level: Level = "problem" if free < GIB / 10 else "warning" if free < GIB else "ok"
    yield Finding(level, "outputs", detail, "" if level == "ok" else mend)


def records(output_dir: Path) -> Findings:
    """That the files of finished runs are those written, by their checksums."""
    damaged = 0
    for folder in runs(output_dir):
        facts = read(folder)
        for name in find_damage(folder, facts, hashes=True) if facts else ("run.json",):
            damaged += 1
            mend = f"runner resume {folder} --fresh computes the run again"
            yield Finding("problem", "records", f"{folder / name} is damaged", mend)
    if not damaged:
        yield Finding("ok", "records", f"all files in {output_dir} are as they were written")


def store(output_dir: Path) -> Findings:
    """That MLflow's store answers; a run needs it neither to start nor to be complete."""
    uri = tracking_uri(output_dir)
    masked_uri = mask_secrets(uri)
    origin = "MLFLOW_TRACKING_URI " if os.environ.get("MLFLOW_TRACKING_URI") else ""
    later = "runs are recorded on disk all the same; `runner sync` pushes them when it answers"
    try:
        file = database_file(uri)
        if file is not None and file.exists():
            n_runs, problem, fix = check_schema(file)
            found = problem or f"{n_runs} run{'' if n_runs == 1 else 's'}"
            level: Level = "problem" if problem else "ok"
            sign = ":" if problem else ","
            yield Finding(level, "mlflow", f"{origin}{masked_uri}{sign} {found}", fix)
        elif file is not None:
            yield Finding("ok", "mlflow", f"{origin}{masked_uri}, will be made by the first run")
        elif uri.startswith(("http://", "https://")):
            # its health endpoint requires no authentication
            health = re.sub(r"://[^/]*@", "://", uri).rstrip("/") + "/health"
            with urllib.request.urlopen(health, timeout=5) as answer:
                yield Finding("ok", "mlflow", f"{origin}{masked_uri} answers ({answer.status})")
        else:
            client = importlib.import_module("mlflow").MlflowClient(tracking_uri=uri)
            client.search_experiments(max_results=1)
            yield Finding("ok", "mlflow", f"{origin}{masked_uri} answers")
    except sqlite3.Error as error:
        mend = "move the file away; `runner sync` fills a new one from the records"
        yield Finding("problem", "mlflow", f"{masked_uri}: {error}", mend)
    except Exception as error:
        # MLflow's clients raise requests', SQLAlchemy's and their own errors; any of them is the
        # finding.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        yield Finding("warning", "mlflow", f"{origin}{masked_uri}: {mask_secrets(reason)}", later)


def data(data_dir: Path) -> Findings:
    """Data files that are there, and those of them that are damaged; a run downloads what it
    lacks."""
    from components.datasets import files

    fix = "runner data list names them, runner data fetch downloads them"
    n_here = 0
    for file in files.catalogue():
        path = files.find(data_dir, file.path)
        if path is None:
            continue
        try:
            files.verify(path, file)
            n_here += 1
        except DamagedFileError as error:
            fetch = f"runner data fetch {file.dataset}"
            yield Finding("problem", file.path, str(error).split(";")[0], fetch)
    n_files = len(files.catalogue())
    found = f"{n_here} of {n_files} files in {data_dir}, checksums fit"
    yield (
        Finding("ok", "data", found) if n_here == n_files else Finding("absent", "data", found, fix)
    )


def check_all(output_dir: Path, data_dir: Path) -> Findings:
    """Findings of every check, one after the other."""
    for check in (python, packages, torch_and_gpu, threads, memory):
        yield from check()
    for check_folder in (outputs, records, store):
        yield from check_folder(output_dir)
    yield from data(data_dir)


def report(findings: Findings, as_json: bool = False) -> dict[Level, int]:
    """Prints each finding as it is made, and counts them by level."""
    counts = dict.fromkeys(COLOURS, 0)
    for finding in findings:
        counts[finding.level] += 1
        if as_json:
            print_json([asdict(finding)])
            continue
        colour = COLOURS[finding.level]
        print_marked(f"{finding.level:<8} ", colour, "", f"{finding.what}: {finding.found}")
        if finding.mend:
            print_fact("         → ", finding.mend)
    return counts


def main(argv: list[str]) -> int:
    """Prints the report; exit code 1 when there is a problem, 0 otherwise."""
    parser = Parser(
        prog="runner doctor",
        description="Says what a run would find here: Python, packages, threads, memory, GPU, MLflow's store, the output "
        "folder, and the data files with their checksums. Each line is ok, absent (data files), warning "
        "or problem, followed by the mend.",
        epilog="Exit code 0, or 1 when there is a problem. Nothing is downloaded and nothing is changed.",
    )
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--data-dir",
        type=existing_folder,
        default=Path(os.environ.get("RUNNER_DATA_DIR", "data")),
        help="where data files lie (default: RUNNER_DATA_DIR, or data)",
    )
    add_json(parser)
    arguments = parser.parse_args(argv[1:])

    counts = report(check_all(arguments.output_dir, arguments.data_dir), arguments.json)
    if not arguments.json:
        print(
            f"{counts['ok']} ok, {counts['absent']} absent, {counts['warning']} warnings, "
            f"{counts['problem']} problems"
        )
    return 1 if counts["problem"] else 0
