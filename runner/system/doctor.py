"""``runner doctor``: the environment that a run would find here.

Each line is ok, absent (data files), warning or problem, with the fix.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sqlite3
import sys
import urllib.request
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import DamagedFileError
from components.memory import GIB
from runner import CONF
from runner.disk.secrets import mask_secrets
from runner.record.facts import read
from runner.record.files import find_damage
from runner.record.record import runs
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
from runner.terminal.tables import print_json
from runner.tracking.schema import check_schema
from runner.tracking.store import database_file, tracking_uri

if TYPE_CHECKING:
    from components.datasets.data_files import DataFile


# ---- what runs write
# --------------------------------------------------------------------------------------------------
def outputs(output_dir: Path, free: int | None = None) -> Findings:
    """That records can be written, and how much room there is."""
    folder = output_dir
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        mend = "make it writable, or set output_dir=… to a folder that is"
        yield Finding("problem", "outputs", f"{output_dir} cannot be written", mend)
        return
    free = shutil.disk_usage(folder).free if free is None else free
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
        if (file := database_file(uri)) is not None:
            yield _sqlite(file, f"{origin}{masked_uri}")
        elif uri.startswith(("http://", "https://")):
            with urllib.request.urlopen(_health(uri), timeout=5) as answer:
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


def _health(uri: str) -> str:
    """Health endpoint of a server; it requires no authentication."""
    return re.sub(r"://[^/]*@", "://", uri).rstrip("/") + "/health"


def _sqlite(file: Path, name: str) -> Finding:
    if not file.exists():
        return Finding("ok", "mlflow", f"{name}, will be made by the first run")
    n_runs, problem, fix = check_schema(file)
    if problem:
        return Finding("problem", "mlflow", f"{name}: {problem}", fix)
    return Finding("ok", "mlflow", f"{name}, {n_runs} run{'' if n_runs == 1 else 's'}")


# ---- data
# -------------------------------------------------------------------------------------------------------------
def data(data_dir: Path, every_file: bool = False) -> Findings:
    """The files of each data set, a line for all of them or for every one: how many are there with
    the right checksum, which are damaged or absent; then what would be used.  An absent file is no
    problem: the run that needs it downloads it."""
    from components.datasets import files

    origin = "RUNNER_DATA_DIR" if os.environ.get("RUNNER_DATA_DIR") == str(data_dir) else "data_dir"
    if data_dir.is_dir():
        yield Finding("ok", "data", f"{data_dir} ({origin})")
    else:
        yield Finding(
            "absent", "data", f"{data_dir} ({origin}) does not exist; the first download makes it"
        )
    for dataset, members in groupby(files.catalogue(), key=lambda file: file.dataset):
        findings = [_check_data_file(data_dir, file) for file in members]
        yield from findings if every_file else _summarise_findings(dataset, findings)
    yield from dataset_identities(data_dir)


def _check_data_file(data_dir: Path, file: DataFile) -> Finding:
    from components.datasets import files

    path = files.find(data_dir, file.path)
    fetch = f"runner data fetch {file.dataset}"
    if path is None:
        if file.urls:
            return Finding("absent", file.path, "a run that needs it downloads it", fetch)
        mend = f"put it into {data_dir} by hand; source: {file.source}"
        return Finding("absent", file.path, "it cannot be downloaded", mend)
    try:
        files.verify(path, file)
    except DamagedFileError as error:
        return Finding("problem", file.path, str(error).split(";")[0], fetch)
    return Finding("ok", file.path, f"{path}, {path.stat().st_size:,} bytes, checksum fits")


def _summarise_findings(dataset: str, found: list[Finding]) -> Findings:
    """One line for all files of a data set, and one more for each that is damaged."""
    damaged = [finding for finding in found if finding.level == "problem"]
    absent = [finding for finding in found if finding.level == "absent"]
    yield from damaged
    here = len(found) - len(absent) - len(damaged)
    files = f"{here} of {len(found)} file{'s' * (len(found) > 1)} here"
    if absent:
        fetch = next((finding.mend for finding in absent if finding.mend.startswith("runner")), "")
        yield Finding("absent", f"data/{dataset}", files, fetch or absent[0].mend)
    else:
        yield Finding("ok", f"data/{dataset}", f"{files}, checksums fit")


def dataset_identities(data_dir: Path) -> Findings:
    """The name under which each dataset with files would record its results now, without
    downloading anything."""
    import yaml

    from components import registry
    from components.errors import DataUnavailableError

    for name in registry.names("dataset"):
        path = CONF / "dataset" / f"{name}.yaml"
        cls: Any = registry.get("dataset", name)
        if "identity" not in vars(cls) or not path.exists():
            continue
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "???" in values.values():  # it is a user's own
            continue
        try:
            used = cls(**values).identity(data_dir, offline=True)
        except DataUnavailableError as error:
            yield Finding(
                "problem", f"dataset={name}", str(error).split(";")[0], f"runner data fetch {name}"
            )
            continue
        if _has_substitute_data(cls, values, data_dir):
            mend = "results would carry that name and compare with no published number"
            detail = f"would use {used}, unless its files are downloaded"
            yield Finding("warning", f"dataset={name}", detail, mend)
        else:
            yield Finding("ok", f"dataset={name}", f"would use {used}")


def _has_substitute_data(cls: Any, values: dict[str, Any], data_dir: Path) -> bool:
    """True if other data would replace missing files; with ``offline: error`` none may."""
    from components.errors import DataUnavailableError

    if "offline" not in cls.model_fields:
        return False
    try:
        cls(**values | {"offline": "error"}).identity(data_dir, offline=True)
    except DataUnavailableError:
        return True
    return False


# ---- the command
# ------------------------------------------------------------------------------------------------------
def report(findings: Findings, as_json: bool = False) -> dict[Level, int]:
    """Prints each finding as it is made, and counts them by level."""
    counts: dict[Level, int] = {"ok": 0, "absent": 0, "warning": 0, "problem": 0}
    colour = {
        "ok": "\033[32m",
        "absent": "\033[36m",
        "warning": "\033[33m",
        "problem": "\033[1;31m",
    }
    terminal = sys.stdout.isatty()
    for finding in findings:
        counts[finding.level] += 1
        if as_json:
            print_json([asdict(finding)])
            continue
        level = (
            f"{colour[finding.level]}{finding.level:<8}\033[0m"
            if terminal
            else f"{finding.level:<8}"
        )
        print(f"{level} {finding.what}: {finding.found}", flush=True)
        if finding.mend:
            print(f"         → {finding.mend}", flush=True)
    return counts


def main(argv: list[str]) -> int:
    """Prints the report; exit code 1 when there is a problem, 0 otherwise."""
    parser = Parser(
        prog="runner doctor",
        description="Says what a run would find here: Python, packages, threads, memory, GPU, MLflow's store, the output "
        "folder, and the files of each data set with their checksums. Each line is ok, absent (a data file, an extra), warning "
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
    parser.add_argument("--files", action="store_true", help="a line for every data file")
    add_json(parser)
    arguments = parser.parse_args(argv[1:])
    output_dir: Path = arguments.output_dir
    data_dir: Path = arguments.data_dir

    def everything() -> Findings:
        for check in (python, packages, torch_and_gpu, threads, memory):
            yield from check()
        yield from outputs(output_dir)
        yield from records(output_dir)
        yield from store(output_dir)
        yield from data(data_dir, arguments.files)

    counts = report(everything(), arguments.json)
    if not arguments.json:
        print(
            f"{counts['ok']} ok, {counts['absent']} absent, {counts['warning']} warnings, "
            f"{counts['problem']} problems"
        )
    return 1 if counts["problem"] else 0
