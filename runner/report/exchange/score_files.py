"""Files of scores: their names, and local copies of those at a URL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runner.disk.scratch import scratch_folder
from runner.errors import ConfigError
from runner.report.exchange.download import MAX_SCORE_BYTES, download, is_url

ORIGIN_SUFFIX = "_origin.json"


def origin_path(scores: Path) -> Path:
    """Path of the origin of a file of scores, next to it."""
    stem = scores.name.removesuffix(".csv").removesuffix("_replicates")
    return scores.with_name(stem + ORIGIN_SUFFIX)


@contextmanager
def open_score_files(sources: Sequence[str]) -> Iterator[dict[str, Path]]:
    """Files by path or URL; those at a URL are copied, with their origins, for the time of the
    context.

    Raises:
        ConfigError: one cannot be downloaded.
    """
    with scratch_folder() as place:
        yield {
            source: _copy_from(source, place / str(number)) if is_url(source) else Path(source)
            for number, source in enumerate(sources)
        }


def _copy_from(url: str, folder: Path) -> Path:
    folder.mkdir()
    try:
        path = download(url, folder, MAX_SCORE_BYTES)
    except (FileNotFoundError, ConfigError) as error:
        raise ConfigError(f"--with {error}") from None
    base, slash, name = url.partition("?")[0].rpartition("/")
    with contextlib.suppress(FileNotFoundError, ConfigError):  # scores may have no origin
        download(base + slash + origin_path(Path(name)).name, folder, MAX_SCORE_BYTES)
    return path
