"""``runner data list|fetch|verify``: which data files there are, where they lie, and whether they
are genuine."""

from __future__ import annotations

import os
from pathlib import Path

from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from components.datasets import files
from components.datasets.data_files import DataFile
from components.errors import DamagedFileError, DataUnavailableError
from runner.errors import ConfigError, nearest
from runner.terminal.arguments import Parser, existing_folder
from runner.terminal.printer import complain, out
from runner.terminal.tables import print_fact, print_table


class _FileProgressBar:
    """One file's progress, in the form that ``files.fetch`` reports it."""

    def __init__(self, progress: Progress, name: str):
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.reset(self._task, total=size or None)  # another mirror starts from nothing

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.stop_task(self._task)


def default_data_dir() -> Path:
    """The ``data_dir`` of a run that does not set it."""
    return Path(os.environ.get("RUNNER_DATA_DIR", "data"))


def _list(chosen: list[DataFile], data_dir: Path, verifies: bool) -> int:
    """Shows where files are, and whether they are genuine or where they are from."""
    lines = []
    damaged = []
    for file in chosen:
        path = files.find(data_dir, file.path)
        state = f"not here: runner data fetch {file.dataset}"
        if path is not None:  # in the data folder, or the cache
            state = f"in {path.parents[file.path.count('/')]}"
        if path is not None and verifies:
            try:
                files.verify(path, file)
                state = f"genuine, {state}"
            except DamagedFileError as error:
                state = f"DAMAGED, {state}"
                damaged.append(str(error))
        lines.append((file.path, decimal(file.bytes), state))
    print_table(f"Data files (data_dir={data_dir})", ("file", "size", "found"), lines)
    sources = dict.fromkeys((f.dataset, f.source, f.licence) for f in chosen)
    for dataset, source, licence in () if verifies else sources:
        print_fact(f"{dataset}: ", f"{source}; licence: {licence}")
    for message in damaged:
        complain(message)
    return 1 if damaged else 0


def _fetch(chosen: list[DataFile], data_dir: Path) -> int:
    files.forget()
    failed = 0
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=out, disable=not out.is_terminal) as progress:
        for file in chosen:
            path = files.find(data_dir, file.path)
            try:
                if path is not None:
                    files.verify(path, file)
                    out.print(f"{file.path}: already in {path.parent}", soft_wrap=True)
                    continue
            except DamagedFileError:
                out.print(f"{file.path}: {path} is damaged and will be replaced", soft_wrap=True)
            try:
                where = files.fetch(data_dir, file, _FileProgressBar(progress, file.path))
                out.print(
                    f"{file.path}: downloaded to {where.parent}, checksum fits", soft_wrap=True
                )
            except DataUnavailableError as error:
                complain(str(error))
                failed += 1
    return 1 if failed else 0


def main(argv: list[str]) -> int:
    """Exit code 0: all well; 1: a file is damaged or cannot be had."""
    parser = Parser(prog="runner data", description="Data files: what is there, download, check.")
    parser.add_argument("action", choices=("list", "fetch", "verify"))
    parser.add_argument(
        "dataset", nargs="*", help="data sets, or all (list and verify: all unless named)"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=default_data_dir(),
        help="default: RUNNER_DATA_DIR, otherwise data",
    )
    arguments = parser.parse_args(argv[1:])
    if arguments.action == "fetch" and not arguments.dataset:
        names = ", ".join(dict.fromkeys(f.dataset for f in files.catalogue()))
        raise ConfigError(f"runner data fetch: name what to download: {names}, or all")
    if arguments.action != "fetch" and arguments.data_dir != default_data_dir():
        existing_folder(arguments.data_dir)
    known = {f.dataset for f in files.catalogue()} | {"all"}
    for name in arguments.dataset:
        if name not in known:
            raise ConfigError(f"{name}: no data set with files{nearest(name, known)}")
    wanted = arguments.dataset or ["all"]
    chosen = [f for f in files.catalogue() if "all" in wanted or f.dataset in wanted]
    if arguments.action == "fetch":
        return _fetch(chosen, arguments.data_dir)
    return _list(chosen, arguments.data_dir, verifies=arguments.action == "verify")
