"""Files of a record for upload to MLflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.disk.inside import real_file
from runner.errors import ConfigError
from runner.record.files import list_files
from runner.tracking.content import InvalidRecordError, RecordContent

FILES = ("config.yaml", "run.json", "metrics.jsonl", "references.bib")
FOLDERS = ("figures", "tables")


def files_to_upload(folder: Path, content: RecordContent) -> Iterator[Path]:
    """Files of a record to upload, with checkpoints if requested.

    Raises:
        InvalidRecordError: a file lies outside the record.
    """
    checkpoints = ["checkpoints"] if content.config.get("tracking_checkpoints") else []
    names = [*FILES, *content.facts["artefacts"]]
    for path in list_files(folder, names, [*FOLDERS, *checkpoints]):
        try:
            yield real_file(folder, str(path.relative_to(folder)), "artefacts")
        except (ConfigError, ValueError):
            raise InvalidRecordError(
                f"{path.name} lies outside the record and is not uploaded"
            ) from None
