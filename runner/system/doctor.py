"""``runner doctor``: check the environment for runs.

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
from runner.errors import first_line
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
from runner.terminal import json_lines
from runner.terminal.arguments import Parser, add_output_dir, existing_folder
from runner.terminal.tables import print_fact, print_json, print_marked
from runner.tracking.schema import check_schema
from runner.tracking.store import database_file, tracking_uri

COLOURS: dict[Level, str] = {"ok": "green", "absent": "cyan", "warning": "yellow", "problem": "red"}


def outputs(output_dir: Path) -> Findings:
    """Check that records can be written, and the free space."""
    folder = output_dir
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        fix = "make it writable, or set output_dir=… to a writable folder"
        yield Finding("problem", "outputs", f"{output_dir} cannot be written", fix)
        return
    free = shutil.disk_usage(folder).free
    detail = f"{output_dir}, {free / GIB:.1f} GiB free" + (
        "" if output_dir.exists() else "; will be created"
    )
    fix = "free some space, or set output_dir=… to another disk"
    level: Level = "problem" if free < GIB / 10 else "warning" if free < GIB else "ok"
    yield Finding(level, "outputs", detail, "" if level == "ok" else fix)


def records(output_dir: Path) -> Findings:
    """Verify the files of finished runs by their checksums."""
    damaged = 0
    for folder in runs(output_dir):
        facts = read(folder)
        for name in find_damage(folder, facts, hashes=True) if facts else ("run.json",):
            damaged += 1
            fix = f"run runner resume {folder} --fresh to repeat the run"
            yield Finding("problem", "records", f"{folder / name} is damaged", fix)
    if not damaged:
        yield Finding("ok", "records", f"all files in {output_dir} are undamaged")


def store(output_dir: Path) -> Findings:
    """Check that MLflow's store is reachable; runs do not require it."""
    uri = tracking_uri(output_dir)
    masked_uri = mask_secrets(uri)
    origin = "MLFLOW_TRACKING_URI " if os.environ.get("MLFLOW_TRACKING_URI") else ""
    later = "runs are still recorded on disk; run `runner sync` later to upload them"
    try:
        file = database_file(uri)
        if file is not None and file.exists():
            n_runs, problem, fix = check_schema(file)
            detail = problem or f"{n_runs} run{'' if n_runs == 1 else 's'}"
            level: Level = "problem" if problem else "ok"
            sign = ":" if problem else ","
            yield Finding(level, "mlflow", f"{origin}{masked_uri}{sign} {detail}", fix)
        elif file is not None:
            yield Finding("ok", "mlflow", f"{origin}{masked_uri}, will be created by the first run")
        elif uri.startswith(("http://", "https://")):
            # the health endpoint requires no authentication
            health = re.sub(r"://[^/]*@", "://", uri).rstrip("/") + "/health"
            with urllib.request.urlopen(health, timeout=5) as answer:
                yield Finding(
                    "ok", "mlflow", f"{origin}{masked_uri} is reachable ({answer.status})"
                )
        else:
            client = importlib.import_module("mlflow").MlflowClient(tracking_uri=uri)
            client.search_experiments(max_results=1)
            yield Finding("ok", "mlflow", f"{origin}{masked_uri} answers")
    except sqlite3.Error as error:
        fix = "move the file away; `runner sync` creates a new one from the records"
        yield Finding("problem", "mlflow", f"{masked_uri}: {error}", fix)
    except Exception as error:
        # MLflow's clients raise errors of requests, SQLAlchemy and MLflow; any of them is the
        # finding.
        reason = first_line(error)
        yield Finding("warning", "mlflow", f"{origin}{masked_uri}: {mask_secrets(reason)}", later)


def data(data_dir: Path) -> Findings:
    """Check the data files for damage; runs download missing ones."""
    from components.datasets import files

    fix = "list them with runner data list, download them with runner data fetch"
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
    detail = f"{n_here} of {n_files} files in {data_dir}, checksums match"
    yield (
        Finding("ok", "data", detail)
        if n_here == n_files
        else Finding("absent", "data", detail, fix)
    )


def check_all(output_dir: Path, data_dir: Path) -> Findings:
    """Findings of all checks in order."""
    for check in (python, packages, torch_and_gpu, threads, memory):
        yield from check()
    for check_folder in (outputs, records, store):
        yield from check_folder(output_dir)
    yield from data(data_dir)


def report(findings: Findings) -> dict[Level, int]:
    """Print each finding when it is made, and count them by level."""
    counts = dict.fromkeys(COLOURS, 0)
    for finding in findings:
        counts[finding.level] += 1
        if json_lines.is_installed():
            print_json([asdict(finding)])
            continue
        colour = COLOURS[finding.level]
        print_marked(f"{finding.level:<8} ", colour, "", f"{finding.what}: {finding.found}")
        if finding.fix:
            print_fact("         → ", finding.fix)
    return counts


def main(argv: list[str]) -> int:
    """Print the report; return 1 if there is a problem, otherwise 0."""
    parser = Parser(
        description="Check the environment for runs: Python, packages, threads, memory, GPU, MLflow's store, the output "
        "folder, and the data files with their checksums. Each line is ok, absent (data files), warning "
        "or problem, followed by the fix.",
        epilog="Exit code 0, or 1 if there is a problem. Nothing is downloaded or changed.",
    )
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--data-dir",
        type=existing_folder,
        default=Path(os.environ.get("RUNNER_DATA_DIR", "data")),
        help="folder of data files (default: RUNNER_DATA_DIR, or data)",
    )
    arguments = parser.parse(argv)

    counts = report(check_all(arguments.output_dir, arguments.data_dir))
    if not arguments.json:
        print(
            f"{counts['ok']} ok, {counts['absent']} absent, {counts['warning']} warnings, "
            f"{counts['problem']} problems"
        )
    return 1 if counts["problem"] else 0
