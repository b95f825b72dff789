"""Data files for ``runner doctor``: those that are there, damaged or absent, and what a run would use."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import DamagedFileError
from runner import CONF
from runner.system.machine import Finding, Findings

if TYPE_CHECKING:
    from components.datasets.data_files import DataFile


def data(data_dir: Path, every_file: bool = False) -> Findings:
    """The files of each data set, a line for all of them or for every one: how many are there with
    the right checksum, which are damaged or absent; then what would be used.  An absent file is no
    problem: the run that needs it downloads it."""
    from components.datasets import files

    origin = "RUNNER_DATA_DIR" if os.environ.get("RUNNER_DATA_DIR") == str(data_dir) else "data_dir"
    if data_dir.is_dir():
        yield Finding("ok", "data", f"{data_dir} ({origin})")
    else:
        yield Finding(
            "absent", "data", f"{data_dir} ({origin}) does not exist; the first download makes it"
        )
    for dataset, members in groupby(files.catalogue(), key=lambda file: file.dataset):
        findings = [_check_data_file(data_dir, file) for file in members]
        yield from findings if every_file else _summarise_findings(dataset, findings)
    yield from dataset_identities(data_dir)


def _check_data_file(data_dir: Path, file: DataFile) -> Finding:
    from components.datasets import files

    path = files.find(data_dir, file.path)
    fetch = f"runner data fetch {file.dataset}"
    if path is None:
        if file.urls:
            return Finding("absent", file.path, "a run that needs it downloads it", fetch)
        mend = f"put it into {data_dir} by hand; source: {file.source}"
        return Finding("absent", file.path, "it cannot be downloaded", mend)
    try:
        files.verify(path, file)
    except DamagedFileError as error:
        return Finding("problem", file.path, str(error).split(";")[0], fetch)
    return Finding("ok", file.path, f"{path}, {path.stat().st_size:,} bytes, checksum fits")


def _summarise_findings(dataset: str, found: list[Finding]) -> Findings:
    """One line for all files of a data set, and one more for each that is damaged."""
    damaged = [finding for finding in found if finding.level == "problem"]
    absent = [finding for finding in found if finding.level == "absent"]
    yield from damaged
    here = len(found) - len(absent) - len(damaged)
    files = f"{here} of {len(found)} file{'s' * (len(found) > 1)} here"
    if absent:
        fetch = next((finding.mend for finding in absent if finding.mend.startswith("runner")), "")
        yield Finding("absent", f"data/{dataset}", files, fetch or absent[0].mend)
    else:
        yield Finding("ok", f"data/{dataset}", f"{files}, checksums fit")


def dataset_identities(data_dir: Path) -> Findings:
    """The name under which each dataset with files would record its results now, without
    downloading anything."""
    import yaml

    from components import registry
    from components.errors import DataUnavailableError

    for name in registry.names("dataset"):
        path = CONF / "dataset" / f"{name}.yaml"
        cls: Any = registry.get("dataset", name)
        if "identity" not in vars(cls) or not path.exists():
            continue
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "???" in values.values():  # it is a user's own
            continue
        try:
            used = cls(**values).identity(data_dir, offline=True)
        except DataUnavailableError as error:
            yield Finding(
                "problem", f"dataset={name}", str(error).split(";")[0], f"runner data fetch {name}"
            )
            continue
        if _has_substitute_data(cls, values, data_dir):
            mend = "results would carry that name and compare with no published number"
            detail = f"would use {used}, unless its files are downloaded"
            yield Finding("warning", f"dataset={name}", detail, mend)
        else:
            yield Finding("ok", f"dataset={name}", f"would use {used}")


def _has_substitute_data(cls: Any, values: dict[str, Any], data_dir: Path) -> bool:
    """True if other data would replace missing files; with ``offline: error`` none may."""
    from components.errors import DataUnavailableError

    if "offline" not in cls.model_fields:
        return False
    try:
        cls(**values | {"offline": "error"}).identity(data_dir, offline=True)
    except DataUnavailableError:
        return True
    return False
