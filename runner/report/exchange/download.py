"""Files at a URL, copied into a temporary folder: http and https, with a timeout and a size limit."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

from runner.errors import ConfigError

SCHEMES = ("http", "https")
TIMEOUT_SECONDS = 30.0  # of a connection, and of every read
MAX_SCORE_BYTES = 256 * 2**20
MAX_ARCHIVE_BYTES = 4 * 2**30
CHUNK_BYTES = 2**20


def _build_opener() -> urllib.request.OpenerDirector:
    """Opener for http and https only, where redirections lead too."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def is_url(source: str) -> bool:
    """True for an address rather than a path."""
    return "://" in source


def download(url: str, folder: Path, limit: int) -> Path:
    """Copy of the file at a URL, under its own name.

    Raises:
        ConfigError: another scheme than http and https, no answer, or more than ``limit`` bytes.
        FileNotFoundError: the server has no such file.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ConfigError(f"{url}: must be an address with http:// or https://")
    name = PurePosixPath(unquote(parts.path)).name or "download"
    path = folder / name.replace("\\", "_").replace("\0", "_")[-120:]
    try:
        with _build_opener().open(url, timeout=TIMEOUT_SECONDS) as answer, path.open("wb") as file:
            _copy(answer, file, url, limit)
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            raise FileNotFoundError(f"{url}: not there ({error.code})") from None
        raise ConfigError(f"{url}: cannot be read ({error.code} {error.reason})") from None
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ConfigError(f"{url}: cannot be read ({reason})") from None
    return path


def _copy(source: IO[bytes], file: IO[bytes], url: str, limit: int) -> None:
    size = 0
    while chunk := source.read(CHUNK_BYTES):
        size += len(chunk)
        if size > limit:
            raise ConfigError(
                f"{url}: larger than {limit / 2**20:.0f} MiB; download it, then give its path"
            )
        file.write(chunk)
