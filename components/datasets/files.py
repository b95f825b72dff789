"""Data files: found in the data folder, or downloaded into it, and never used unless their checksum
fits.

    path = locate(data_dir, "sarcos/sarcos_inv_test.mat")

A file is looked for in the data folder, then in the user's cache.  A download goes to the first of
the two that can be written, so a read-only data folder is used as it is and never written to.
``catalogue.yaml`` lists every file."""

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

# a host that does not answer is given up after this time, once for all files
CONNECT_SECONDS = 3.0
STALL_SECONDS = 10.0  # a connection on which nothing arrives for this long is given up
LEFT_SECONDS = 600.0  # a part of a file that has not grown for this long is abandoned
# downloads that failed in this process: not tried again
_failures: dict[tuple[Path, str], str] = {}


def locate(data_dir: Path, path: str, offline: bool = False) -> Path:
    """A file of the catalogue, checked, downloading it if need be and if not ``offline``.

    Raises:
        DamagedFileError: it is there, but its checksum does not fit.
        DataUnavailableError: it is not there and cannot be downloaded; a failed download is not
            tried again by the process.
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
    """True if this process has tried a download in vain."""
    return bool(_failures)


def fetch(data_dir: Path, file: DataFile, progress: Any = False) -> Path:
    """Download a file from its mirrors in turn, check it, and give it its name.

    The last step is atomic: safe among processes.  ``progress`` has ``total``,
    ``update(bytes)``, ``reset()`` and ``close()``.

    Raises:
        DataUnavailableError: names every address tried, the reason of failure, and the remedy.
    """
    from pooch import HTTPDownloader  # imports requests: not needed when the file is there

    if not file.urls:
        raise DataUnavailableError(
            f"{file.path}: not in {Path(data_dir)}, and no address offers it ({file.source}); put it there, or set data_dir "
            "(RUNNER_DATA_DIR) to a folder that holds it"
        )
    folder = next((f for f in folders(data_dir) if writable(f)), None)
    if folder is None:
        raise DataUnavailableError(
            _missing_file_message(data_dir, file, "no folder to download it to can be written")
        )
    target = folder / file.path
    tried = []
    download = HTTPDownloader(
        progress,
        chunk_size=1 << 16,
        timeout=(CONNECT_SECONDS, STALL_SECONDS),
        # a .gz file is stored as it is, not unpacked during the download
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
            tried.append(f"{url} (sent another file: {wrong})")
        except OSError as error:  # requests' errors are OSErrors too
            tried.append(f"{url} ({_reason(error)})")
        finally:
            part.unlink(missing_ok=True)
    raise DataUnavailableError(
        _missing_file_message(data_dir, file, "could not be downloaded from " + ", ".join(tried))
    )


def remove_parts(folder: Path) -> None:
    """Removes parts of files that nobody has written to for a while, as a process that was killed
    leaves them."""
    for part in folder.glob(".*.part"):
        if time.time() - part.stat().st_mtime > LEFT_SECONDS:
            part.unlink(missing_ok=True)


def forget() -> None:
    """Lets ``locate`` and ``fetch`` try again what failed before in this process."""
    _failures.clear()
    _connects.cache_clear()


def _missing_file_message(data_dir: Path, file: DataFile, why: str) -> str:
    return (
        f"{file.path}: not in {Path(data_dir)} and {why}; run `runner data fetch {file.dataset}` where there is a "
        "network, or set data_dir (RUNNER_DATA_DIR) to a folder that holds it"
    )


def _reason(error: OSError) -> str:
    # here: it takes a while, and only a download that failed needs it
    from requests import RequestException

    if isinstance(error, RequestException) and error.response is not None:
        return f"HTTP {error.response.status_code}"
    return error.strerror or type(error).__name__


def _is_reachable(url: str) -> bool:
    """True if the host of an address, or its proxy, accepts a connection.

    Time limits of HTTP libraries count per address of a host, and each file would wait for them.
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
    """Why files cannot be had; None: they can.

    Asked once per process: a file that arrives later must not make a run's data differ from its
    signature.

    Raises:
        DamagedFileError: one is there and is not what it should be, which is never passed over
            in silence.
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
    """Announce a simulation that takes the place of data that cannot be had."""
    warnings.warn(
        f"SIMULATED DATA: {what} cannot be had, {stand_in} takes its place; "
        f"everything is recorded as {name} and compares with no published number ({why})",
        SimulatedDataWarning,
        stacklevel=2,  # from the file of the component: the runner shows such warnings
    )
