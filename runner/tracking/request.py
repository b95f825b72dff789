"""Requests of runs for uploads: an empty file for each run in ``<output_dir>/.tracking``.

The lease of a run's record shows if the run is active, even if its process was killed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def queue(output_dir: Path) -> Path:
    """Folder of all requests."""
    return output_dir / ".tracking"


def request_push(folder: Path, output_dir: Path) -> None:
    """Request the upload of a run.

    Raises:
        OSError: the output folder cannot be written.
    """
    queue(output_dir).mkdir(parents=True, exist_ok=True)
    (queue(output_dir) / f"{folder.parent.name}.{folder.name}").touch()


def requests(output_dir: Path) -> list[Path]:
    """Pending requests."""
    with suppress(OSError):
        return sorted(path for path in queue(output_dir).iterdir() if not path.name.startswith("."))
    return []


def folder_of(request: Path, output_dir: Path) -> Path | None:
    """Run folder of a request, or None if it is not a folder of a run."""
    experiment, _, signature = request.name.rpartition(".")
    folder = output_dir / experiment / signature
    is_inside = folder.resolve().parent.parent == output_dir.resolve()
    return folder if is_inside and (folder / "run.json").exists() else None
