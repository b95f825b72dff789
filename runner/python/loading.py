"""``load``: load a recorded run."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from runner.python.result import Result
from runner.report.compared_record import load as load_record
from runner.report.exchange.opened import find_in, find_records


def load_result(folder: Path, was_done: bool, data_dir: str | None = None) -> Result:
    """Content of the record in a folder.

    Raises:
        ConfigError: the record cannot be read.
    """
    return Result(folder, was_done, load_record(folder), data_dir)


def load(
    record: str | PathLike[str],
    *,
    output_dir: str | PathLike[str] = "outputs",
    data_dir: str | PathLike[str] | None = None,
) -> Result:
    """Load a recorded run.

    Args:
        record: folder of the run, or the beginning of its id.
        output_dir: folder of the records, or an archive of a study, to search for an id.
        data_dir: folder of the data files, by default the recorded one.

    Returns:
        The recorded run.

    Raises:
        ConfigError: the run does not exist, the id is ambiguous, or the record is damaged.

    Example:
        >>> from runner import load, run
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> load(result.id[:8]).record == load(result.record).record == result.record
        True
    """
    folder = find_in(str(record), find_records([], output_dir)[1])
    return load_result(folder, was_done=True, data_dir=None if data_dir is None else str(data_dir))
