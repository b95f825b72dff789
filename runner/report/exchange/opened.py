"""Archives of studies, opened read-only: extracted into a temporary folder that is removed
afterwards.

Names, types, numbers, sizes and checksums of the files are verified, and nothing is executed,
because an archive may be untrusted.
"""

from __future__ import annotations

import atexit
import hashlib
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from runner.disk.inside import inside
from runner.disk.scratch import scratch_folder
from runner.disk.zips import open_zip
from runner.errors import ConfigError
from runner.record import folders as record_folders

SUFFIX = ".zip"
MANIFEST = "archive.json"
FORMAT = 1
MAX_FILES = 200_000
MAX_BYTES = 16 * 2**30  # total size of extracted files
MAX_MANIFEST_BYTES = 64 * 2**20
MAX_RATIO = 1000  # compression ratio of a large file
MAX_TOTAL_RATIO = 100  # compression ratio of the archive; metrics have a ratio of 20
LARGE_BYTES = 16 * 2**20
CHUNK_BYTES = 2**20


class Manifest(TypedDict):
    """Required content of archive.json."""

    study: str
    format: int
    files: dict[str, str]  # SHA-256 by name


@dataclass(frozen=True)
class OpenedArchive:
    """Folder of an archive, with the layout of an output folder, and the name of its study."""

    folder: Path
    study: str

    @property
    def conf(self) -> Path | None:
        """Folder of the user's own archived YAML files, or None."""
        folder = self.folder / "conf"
        return folder if folder.is_dir() else None


def is_archive(source: str) -> bool:
    """True if a word names an archive and not a study or a run."""
    return source.endswith(SUFFIX)


@contextmanager
def open_archive(source: str) -> Iterator[OpenedArchive]:
    """Context with an extracted archive.

    Raises:
        ConfigError: the archive cannot be read, is damaged, or has unexpected content.
    """
    with scratch_folder() as place:
        folder = place / "outputs"
        folder.mkdir()
        try:
            with open_zip(Path(source), f"{source}: damaged or not an archive") as archive:
                manifest = _read_manifest(archive, source)
                _extract(archive, manifest["files"], folder, source)
        except FileNotFoundError:
            raise ConfigError(f"{source}: no such file") from None
        yield OpenedArchive(folder, manifest["study"])


def find_records(
    words: Iterable[str], output_dir: str | PathLike[str]
) -> tuple[list[str], list[Path]]:
    """Words for runs, and the folders to search, including archives.

    Archives without other words contribute all their runs.
    """
    words = list(words)
    archives = [_extract_for_process(word) for word in words if is_archive(word)]
    runs = [word for word in words if not is_archive(word)]
    if not runs:
        runs = [str(folder) for archive in archives for folder in record_folders.runs(archive)]
    place = str(output_dir)
    return runs, [*archives, _extract_for_process(place) if is_archive(place) else Path(place)]


def _extract_for_process(source: str) -> Path:
    """Folder of an archive's records, removed when this process ends."""
    path = Path(source)
    return _extract_version(source, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _extract_version(source: str, _changed: int) -> Path:
    return _UNTIL_EXIT.enter_context(open_archive(source)).folder


_UNTIL_EXIT = ExitStack()
atexit.register(_UNTIL_EXIT.close)


def find_in(name: str, folders: list[Path]) -> Path:
    """Find a run in the first folder that contains it.

    Raises:
        ConfigError: the run does not exist or is ambiguous.
    """
    *archives, last = folders
    has_run = (
        folder
        for folder in archives
        if any(record_folders.is_named(path, name) for path in record_folders.runs(folder))
    )
    return record_folders.find(name, next(has_run, last))


def _read_manifest(archive: zipfile.ZipFile, source: str) -> Manifest:
    """Verified content of archive.json.

    Raises:
        ConfigError: the file is missing, damaged, or has a later version.
    """
    try:
        info = archive.getinfo(MANIFEST)
        if info.file_size > MAX_MANIFEST_BYTES:
            raise ValueError("too large")
        manifest = TypeAdapter(Manifest).validate_json(archive.read(info), strict=True)
    except (KeyError, ValueError):
        raise ConfigError(
            f"{source}: not an archive of a study, because it has no valid {MANIFEST}; create one with runner archive STUDY"
        ) from None
    if manifest["format"] > FORMAT:
        raise ConfigError(
            f"{source}: format {manifest['format']}, but this version reads {FORMAT}; install a later version"
        )
    return manifest


def _extract(archive: zipfile.ZipFile, digests: dict[str, str], folder: Path, source: str) -> None:
    """Extract the files of the manifest to a new folder.

    Raises:
        ConfigError: a name, type, size or checksum is invalid.
    """
    entries = [info for info in archive.infolist() if info.filename != MANIFEST]
    _refuse_sizes(entries, source)
    names = [info.filename for info in entries]
    if len(set(names)) < len(names) or set(names) != set(digests):
        raise ConfigError(f"{source}: its files differ from the list in {MANIFEST}; not opened")
    for info in entries:
        _refuse_entry(info, folder, source)
    for info in entries:
        path = folder / info.filename
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with archive.open(info) as packed, path.open("xb") as file:
            while chunk := packed.read(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != digests[info.filename]:
            raise ConfigError(
                f"{source}: {info.filename} differs from the archived file (SHA-256); not opened"
            )


def _refuse_sizes(entries: list[zipfile.ZipInfo], source: str) -> None:
    """Refuse an archive with too many files, or with too large a total size or ratio."""
    size = sum(info.file_size for info in entries)
    if len(entries) > MAX_FILES or size > MAX_BYTES:
        raise ConfigError(
            f"{source}: more than {MAX_FILES} files or {MAX_BYTES / 2**30:.0f} GiB; not opened"
        )
    largest = max((info.file_size for info in entries), default=0)  # limited separately
    packed = sum(info.compress_size for info in entries)
    if size - largest > LARGE_BYTES + MAX_TOTAL_RATIO * packed:
        raise ConfigError(f"{source}: expands more than {MAX_TOTAL_RATIO} times; not opened")


def _refuse_entry(info: zipfile.ZipInfo, folder: Path, source: str) -> None:
    """Refuse an entry that leads out of the folder, is not a plain file, or expands too far."""
    name = info.filename
    if info.orig_filename != name or "\\" in name or ":" in name:
        raise ConfigError(f"{source}: the name {info.orig_filename!r} is not plain; not opened")
    inside(folder, name, source)
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir() or kind not in (0, stat.S_IFREG) or info.flag_bits & 1:
        raise ConfigError(
            f"{source}: {name} is a link, a folder or encrypted, not a plain file; not opened"
        )
    if info.file_size > LARGE_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise ConfigError(f"{source}: {name} expands more than {MAX_RATIO} times; not opened")
