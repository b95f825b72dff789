"""``runner data list|fetch|verify``: list, download and verify data files."""

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
from runner.terminal.tables import print_named, print_table

COLUMNS = ("file", "size", "location")


class _FileProgressBar:
    """Progress bar of a download, with the interface expected by ``files.fetch``."""

    total = 0  # bytes, set when a download begins

    def __init__(self, progress: Progress, name: str):
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    def update(self, size: int) -> None:
        self._progress.update(self._task, total=self.total or None, advance=size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.stop_task(self._task)


def default_data_dir() -> Path:
    """Default ``data_dir`` of a run."""
    return Path(os.environ.get("RUNNER_DATA_DIR", "data"))


def _list(chosen: list[DataFile], data_dir: Path, verifies: bool) -> int:
    """Print the locations of files with their verification or their sources."""
    lines = []
    damaged = []
    for file in chosen:
        path = files.find(data_dir, file.path)
        state = f"missing: runner data fetch {file.dataset}"
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
    print_table(f"Data files (data_dir={data_dir})", COLUMNS, lines)
    sources = dict.fromkeys((f.dataset, f.source, f.licence) for f in chosen)
    for dataset, source, licence in () if verifies else sources:
        print_named("source", f"{dataset}: {source}; licence: {licence}")
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
                    f"{file.path}: downloaded to {where.parent}, checksum verified", soft_wrap=True
                )
            except DataUnavailableError as error:
                complain(str(error))
                failed += 1
    return 1 if failed else 0


def main(argv: list[str]) -> int:
    """Execute ``runner data``; return 1 if a file is damaged or not available, otherwise 0."""
    parser = Parser(description="List, download or verify data files.")
    parser.add_argument("action", choices=("list", "fetch", "verify"))
    parser.add_argument(
        "dataset", nargs="*", help="data sets, or all (default of list and verify: all)"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=default_data_dir(),
        help="default: RUNNER_DATA_DIR, otherwise data",
    )
    arguments = parser.parse(argv)
    if arguments.action == "fetch" and not arguments.dataset:
        names = ", ".join(dict.fromkeys(f.dataset for f in files.catalogue()))
        raise ConfigError(f"runner data fetch: a data set is missing; choose {names}, or all")
    if arguments.action != "fetch" and arguments.data_dir != default_data_dir():
        existing_folder(arguments.data_dir)
    known_names = {f.dataset for f in files.catalogue()} | {"all"}
    for name in arguments.dataset:
        if name not in known_names:
            raise ConfigError(f"{name}: unknown data set{nearest(name, known_names)}")
    wanted = arguments.dataset or ["all"]
    chosen = [f for f in files.catalogue() if "all" in wanted or f.dataset in wanted]
    if arguments.action == "fetch":
        return _fetch(chosen, arguments.data_dir)
    return _list(chosen, arguments.data_dir, verifies=arguments.action == "verify")
