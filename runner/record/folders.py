"""Folders of recorded runs, and the names by which they are found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.errors import ConfigError, nearest
from runner.record import facts
from runner.record.facts import is_there, list_folder

SHOWN = 5  # runs in the message for an ambiguous name


def runs(output_dir: Path) -> list[Path]:
    """All run folders under an output folder; folders without read permission cause a warning."""
    return [folder for folder in _folders(output_dir) if is_there(folder / facts.NAME)]


def _folders(output_dir: Path) -> Iterator[Path]:
    """Content of the folders in which runs are recorded."""
    return (folder for experiment in list_folder(output_dir) for folder in list_folder(experiment))


def is_named(folder: Path, run: str) -> bool:
    """True if a run's name is the beginning of its signature, or experiment/signature."""
    experiment, slash, signature = run.rstrip("/").rpartition("/")
    return folder.name.startswith(signature) and (not slash or folder.parent.name == experiment)


def find(run: str, output_dir: Path) -> Path:
    """Find a run by its folder, or by the beginning of its signature with or without its
    experiment.

    Raises:
        ConfigError: no run or several runs match.
        PermissionError: the folder is not readable for this user.
    """
    if (Path(run) / facts.NAME).exists():
        return Path(run)
    matching = [
        folder
        for folder in _folders(output_dir)
        if is_named(folder, run) and (folder / facts.NAME).exists()
    ]
    if len(matching) == 1:
        return matching[0]
    names = list(map(name_run, matching or runs(output_dir)))
    if matching:
        listed = ", ".join(names[:SHOWN]) + (", …" if names[SHOWN:] else "")
        raise ConfigError(f"{run}: {len(names)} runs have this name: give one of {listed}")
    raise ConfigError(
        f"{run}: no such run under {output_dir} (give a folder, the beginning of a signature, or "
        f"experiment/signature){nearest(run, names)}"
    )


def name_run(folder: Path) -> str:
    """Name of a run: experiment/signature."""
    return f"{folder.parent.name}/{folder.name}"
