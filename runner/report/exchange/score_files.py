"""Lines of files of scores, CSV or Parquet, and local copies of those at a URL."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.disk.scratch import scratch_folder
from runner.errors import ConfigError
from runner.report.exchange.download import MAX_SCORE_BYTES, download, is_url
from runner.terminal.csv_cells import unescape_cell

PARQUET = ".parquet"
ORIGIN_SUFFIX = "_origin.json"
MAX_LINES = 10_000_000
Line = dict[str, str]


@dataclass(frozen=True)
class ScoreFile:
    """A file of scores here, and its name for the user: a path or a URL."""

    path: Path
    label: str


def as_score_file(source: Path | ScoreFile) -> ScoreFile:
    """A file of scores named by its path."""
    return source if isinstance(source, ScoreFile) else ScoreFile(source, str(source))


def origin_path(scores: Path) -> Path:
    """Path of the origin of a file of scores, next to it."""
    stem = scores.name.removesuffix(PARQUET).removesuffix(".csv")
    return scores.with_name(stem.removesuffix("_replicates") + ORIGIN_SUFFIX)


@contextmanager
def open_score_files(sources: Sequence[str]) -> Iterator[list[ScoreFile]]:
    """Files of scores; those at a URL are copied, with their origins, for the time of the context.

    Raises:
        ConfigError: one cannot be downloaded.
    """
    with scratch_folder() as place:
        yield [
            _copy_from(source, place / str(number))
            if is_url(source)
            else ScoreFile(Path(source), source)
            for number, source in enumerate(sources)
        ]


def _copy_from(url: str, folder: Path) -> ScoreFile:
    folder.mkdir()
    try:
        path = download(url, folder, MAX_SCORE_BYTES)
    except (FileNotFoundError, ConfigError) as error:
        raise ConfigError(f"--with {error}") from None
    base, slash, name = url.partition("?")[0].rpartition("/")
    with contextlib.suppress(FileNotFoundError, ConfigError):  # scores may have no origin
        download(base + slash + origin_path(Path(name)).name, folder, MAX_SCORE_BYTES)
    return ScoreFile(path, url)


def read_lines(file: ScoreFile, required: Sequence[str]) -> list[tuple[int, Line]]:
    """Numbered lines as texts by column.

    Raises:
        ConfigError: it cannot be read, or lacks a column.
    """
    is_parquet = file.path.suffix == PARQUET
    columns, lines = (_read_parquet if is_parquet else _read_csv)(file)
    missing = [name for name in required if name not in columns]
    if missing:
        raise ConfigError(
            f"--with {file.label}: has no column {missing[0]}; give the <study>_replicates.csv that runner report writes"
        )
    return lines


def _read_csv(file: ScoreFile) -> tuple[Sequence[str], list[tuple[int, Line]]]:
    try:
        with file.path.open(newline="", encoding="utf-8") as opened:
            reader = csv.DictReader(opened)
            meant = (
                {k: unescape_cell(v) if isinstance(v, str) else v for k, v in line.items()}
                for line in reader
            )
            lines = list(enumerate(meant, start=2))
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(f"--with {file.label}: cannot be read (not text)") from None
    return reader.fieldnames or [], lines


def _read_parquet(file: ScoreFile) -> tuple[Sequence[str], list[tuple[int, Line]]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ConfigError(
            f"--with {file.label}: Parquet needs pyarrow; pip install pyarrow, or give CSV"
        ) from None
    try:
        with parquet.ParquetFile(file.path) as opened:
            if opened.metadata.num_rows > MAX_LINES:
                raise ConfigError(f"--with {file.label}: more than {MAX_LINES:,} lines")
            table = opened.read()
    except (OSError, pyarrow.ArrowException):
        raise ConfigError(f"--with {file.label}: cannot be read (no Parquet)") from None
    rows = table.to_pylist()
    lines = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
    return table.column_names, list(enumerate(lines, start=1))
