"""Data files, located in the data folder or downloaded into it, and used only if their checksum
matches.

    path = locate(data_dir, "sarcos/sarcos_inv_test.mat")

A file is searched in the data folder, then in the user's cache.  A download goes to the first
writable one of the two, so a read-only data folder stays unchanged. ``catalogue.yaml`` lists every
file."""

from __future__ import annotations

import os
import socket
import time
import uuid
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from components.datasets.checksums import mismatch
from components.datasets.data_files import DataFile, catalogue, find, folders, verify, writable
from components.errors import DamagedFileError, DataUnavailableError, SimulatedDataWarning

# timeout of the connection to a host, which applies once for all files
CONNECT_SECONDS = 3.0
STALL_SECONDS = 10.0  # timeout of a connection without incoming data
LEFT_SECONDS = 600.0  # age after which an unchanged partial file counts as abandoned
# downloads that failed in this process and are not retried
_failures: dict[tuple[Path, str], str] = {}


def locate(data_dir: Path, path: str, offline: bool = False) -> Path:
    """Path of a verified file of the catalogue, downloaded if necessary and not ``offline``.

    Raises:
        DamagedFileError: the file does not match its checksum.
        DataUnavailableError: the file does not exist and cannot be downloaded; a process does not
            retry a failed download.
    """
    file = next(f for f in catalogue() if f.path == path)
    local_path = find(data_dir, path)
    if local_path is not None:
        verify(local_path, file)
        return local_path
    if offline and file.urls:
        raise DataUnavailableError(
            _missing_file_message(data_dir, file, "no download was attempted (offline)")
        )
    key = (Path(data_dir), path)
    if key in _failures:
        raise DataUnavailableError(_failures[key])
    try:
        return fetch(data_dir, file)
    except DataUnavailableError as error:
        _failures[key] = str(error)
        raise


def downloads_failed() -> bool:
    """True if a download has failed in this process."""
    return bool(_failures)


def fetch(data_dir: Path, file: DataFile, progress: Any = False) -> Path:
    """Download a file from its mirrors in turn, verify it, and rename it to its final name.

    The renaming is atomic, so concurrent processes are safe.  ``progress`` has ``total``,
    ``update(bytes)``, ``reset()`` and ``close()``.

    Raises:
        DataUnavailableError: no address has the file; the message lists them with the reason and
            the fix.
    """
    from pooch import HTTPDownloader  # imports requests, which is not needed for an existing file

    if not file.urls:
        raise DataUnavailableError(
            f"{file.path}: not in {Path(data_dir)}, and not downloadable ({file.source}); copy it there, or set data_dir "
            "(RUNNER_DATA_DIR) to a folder that holds it"
        )
    folder = next((f for f in folders(data_dir) if writable(f)), None)
    if folder is None:
        raise DataUnavailableError(
            _missing_file_message(data_dir, file, "no download folder is writable")
        )
    target = folder / file.path
    tried = []
    download = HTTPDownloader(
        progress,
        chunk_size=1 << 16,
        timeout=(CONNECT_SECONDS, STALL_SECONDS),
        # a .gz file is stored compressed
        headers={"Accept-Encoding": "identity"},
    )
    for url in file.urls:
        if not _is_reachable(url):
            tried.append(f"{url} (no connection)")
            continue
        part = target.with_name(f".{target.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.part")
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            remove_parts(part.parent)
            download(url, str(part), None)
            wrong = mismatch(part, file.checksums)
            if wrong is None:
                os.replace(part, target)
                return target
            tried.append(f"{url} (sent a different file: {wrong})")
        except OSError as error:  # the errors of requests are also OSErrors
            tried.append(f"{url} ({_reason(error)})")
        finally:
            part.unlink(missing_ok=True)
    raise DataUnavailableError(
        _missing_file_message(data_dir, file, "could not be downloaded from " + ", ".join(tried))
    )


def remove_parts(folder: Path) -> None:
    """Remove partial files without recent changes, which killed processes leave behind."""
    for part in folder.glob(".*.part"):
        if time.time() - part.stat().st_mtime > LEFT_SECONDS:
            part.unlink(missing_ok=True)


def forget() -> None:
    """Forget failed downloads, so that ``locate`` and ``fetch`` retry them."""
    _failures.clear()
    _connects.cache_clear()


def _missing_file_message(data_dir: Path, file: DataFile, why: str) -> str:
    return (
        f"{file.path}: not in {Path(data_dir)} and {why}; run `runner data fetch {file.dataset}` "
        "with a network connection, or set data_dir (RUNNER_DATA_DIR) to a folder that holds it"
    )


def _reason(error: OSError) -> str:
    # imported here because it is slow and needed only after a failed download
    from requests import RequestException

    if isinstance(error, RequestException) and error.response is not None:
        return f"HTTP {error.response.status_code}"
    return error.strerror or type(error).__name__


def _is_reachable(url: str) -> bool:
    """True if the host of an address, or its proxy, accepts a connection.

    Timeouts of HTTP libraries apply to each address of a host, and each file would wait for them.
    """
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    parts = urlsplit(proxy or url)
    return _connects(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


@cache
def _connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


@cache
def why_unavailable(data_dir: Path, paths: tuple[str, ...], offline: bool) -> str | None:
    """Reason why files are unavailable; None if they are available.

    Determined once per process: a file that arrives later must not make a run's data differ from
    its signature.

    Raises:
        DamagedFileError: a file exists with unexpected content, which is never ignored.
    """
    try:
        for path in paths:
            locate(data_dir, path, offline)
    except DamagedFileError:
        raise
    except DataUnavailableError as error:
        return str(error)
    return None


def warn_simulated(what: str, stand_in: str, name: str, why: str | None) -> None:
    """Warn that a simulation replaces unavailable data."""
    warnings.warn(
        f"SIMULATED DATA: {what} is unavailable and replaced by {stand_in}; everything is recorded "
        f"as {name} and is not comparable with published results ({why})",
        SimulatedDataWarning,
        stacklevel=2,  # from the file of the component: the runner shows such warnings
    )
