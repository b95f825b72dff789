"""The record of a run on disk: the truth, readable without a server.

outputs/<experiment>/<signature>/
    config.yaml      resolved config            metrics.jsonl   one line per recorded step
    run.json         state, times, versions     checkpoints/  figures/  tables/  references.bib
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omegaconf import OmegaConf

from runner.mistakes import ConfigError, RunFailure
from runner.record import code
from runner.record.atomic import write_text

if TYPE_CHECKING:
    from runner.compose.config import Job

RunState = Literal["pending", "running", "done", "failed", "diverged", "interrupted"]

# What a folder that cannot be written answers; any other error has another cause.
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.EEXIST, errno.ENAMETOOLONG)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _hardware(device: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count()}
    try:
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        facts["cpu"] = names[0].split(":", 1)[1].strip() if names else platform.processor()
    except OSError:
        facts["cpu"] = platform.processor()
    if device != "cpu":
        import torch

        facts["gpu"] = torch.cuda.get_device_name(device)
    return facts


def disk_failure(error: OSError, folder: Path) -> RunFailure | ConfigError:
    """What an OSError of a run means to the user: only one that is about its record is called a failure to write there."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunFailure(
            f"disk full: {folder} cannot be written; free some space, then give the same command to go on"
        )
    why, about = error.strerror or str(error), str(error.filename or "")
    named, ours = Path(about).absolute(), folder.absolute()
    if about and not (named.is_relative_to(ours) or ours.is_relative_to(named)):
        return RunFailure(f"{type(error).__name__}: {about} ({why}); mend that, then give the same command to go on")
    if error.errno in _REFUSALS:
        return ConfigError(f"output_dir: cannot write to {folder} ({why}); set output_dir=… to a folder you can write")
    return RunFailure(
        f"{type(error).__name__}: {f'{about} ({why})' if about else why}; "
        f"what was done is in {folder}: give the same command to go on"
    )


class Record:
    """One run's folder, locked while the run is going."""

    def __init__(self, folder: Path, facts: dict[str, Any]):
        self.folder, self.facts = folder, facts
        self._lock: Any = None
        self._lines: Any = None

    @classmethod
    def open(cls, job: Job) -> Record:
        """The folder of a job, new or found again, locked.

        Raises:
            ConfigError: the folder cannot be written, or another process runs the same job.
        """
        folder = job.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / ".lock").open("a+")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                process = lock.read().strip() or "unknown"
                raise ConfigError(
                    f"run {job.signature} is already going (process {process}); wait for it, or change seed="
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            found = read(folder)
            if found and not job.settings.fresh:
                record = cls(folder, found)
            else:
                record = cls(folder, {})
                for old in (folder / "checkpoints").glob("*"):
                    old.unlink()
                (folder / "metrics.jsonl").unlink(missing_ok=True)
                (folder / "mlflow.json").unlink(missing_ok=True)
                record.facts = {
                    "state": "pending",
                    "experiment": job.settings.experiment,
                    "signature": job.signature,
                    "data": job.data,
                    "data_state": job.data_state,
                    "choice": job.choice,
                    "seed": job.settings.seed,
                    "replicates": job.settings.replicates,
                    "smoke": job.settings.smoke,
                    "study": os.environ.get("RUNNER_STUDY"),
                    "started": now(),
                    "ended": None,
                    "seconds": 0.0,
                    "finished": {},
                    "result": {},
                    "error": None,
                }
            record._lock = lock
            if record.state != "done":
                if record.facts.get("git") is not None and "code" not in record.facts:  # a record of before
                    record.facts["code"] = [{"replicate": 0, "step": 0, **record.code}]
                record.facts |= {
                    "git": code.commit(job.settings.keep_diff),
                    "versions": code.versions(),
                    "hardware": _hardware(job.settings.device),
                    "threads": job.settings.threads,
                    "command": sys.argv[1:],
                }
                write_text(folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(job.config)))
                record.save()
        except OSError as error:
            raise disk_failure(error, folder) from None
        return record

    @property
    def code(self) -> dict[str, Any]:
        """What is at work now."""
        return code.identity(self.facts["git"], self.facts["versions"])

    def works_from(self, replicate: int, step: int) -> str | None:
        """Lists the code that works from here on in the record; returns how it differs from the one that worked before.

        What was listed from a place that is not behind this one did nothing that is left."""
        here = {"replicate": replicate, "step": step}
        before = [e for e in self.facts.get("code", []) if (e["replicate"], e["step"]) < (replicate, step)]
        last = {k: v for k, v in before[-1].items() if k not in here} if before else None
        changed = code.difference(last, self.code) if last else None
        if changed or not before:
            before.append(here | self.code)
        if before != self.facts.get("code"):
            self.save(code=before)
        return changed

    @property
    def state(self) -> RunState:
        return self.facts["state"]

    def save(self, **changes: Any) -> None:
        """Updates run.json, whole or not at all."""
        self.facts |= changes
        write_text(self.folder / "run.json", json.dumps(self.facts, indent=1))

    def line(self, step: int, replicate: int, seconds: float, phase: str, metrics: dict[str, Any]) -> None:
        """Appends one line to metrics.jsonl."""
        if self._lines is None:
            self._lines = (self.folder / "metrics.jsonl").open("a")
        entry = {"step": step, "replicate": replicate, "time": round(seconds, 3), "phase": phase, "metrics": metrics}
        self._lines.write(json.dumps(entry) + "\n")

    def flush(self) -> None:
        if self._lines is not None:
            self._lines.flush()

    def sync(self) -> None:
        """Puts the lines on the disk itself, where a power cut leaves them."""
        if self._lines is not None:
            self._lines.flush()
            os.fsync(self._lines.fileno())

    def rewind(self, replicate: int, step: int) -> None:
        """Drops the lines after a checkpoint: the resumed run writes them again."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return
        if self._lines is not None:  # the file is about to be replaced: lines written on to the old one would be lost
            self._lines.close()
            self._lines = None
        kept = [line for line in read_lines(self.folder) if (line["replicate"], line["step"]) <= (replicate, step)]
        write_lines(self.folder, kept)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
        if self._lock is not None:
            self._lock.close()


def read(folder: Path) -> dict[str, Any] | None:
    """run.json of a folder; None when there is none or it is damaged (the run then starts again)."""
    try:
        facts = json.loads((folder / "run.json").read_text())
        return facts if isinstance(facts, dict) and "state" in facts else None
    except (OSError, ValueError):
        return None


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; a last one cut short by a crash is left out."""
    lines = []
    for text in (folder / "metrics.jsonl").read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines


def write_lines(folder: Path, lines: list[dict[str, Any]]) -> None:
    """metrics.jsonl anew, whole or not at all."""
    write_text(folder / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def runs(output_dir: Path) -> list[Path]:
    """Every run folder under an output folder."""
    return sorted(p.parent for p in output_dir.glob("*/*/run.json"))


def find(run: str, output_dir: Path) -> Path:
    """A run named by its folder or by the beginning of its signature.

    Raises:
        ConfigError: none, or several, match.
    """
    if (Path(run) / "run.json").exists():
        return Path(run)
    matching = [folder for folder in runs(output_dir) if folder.name.startswith(run)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ConfigError(
            f"{run}: {len(matching)} runs begin so: {', '.join(f'{m.parent.name}/{m.name}' for m in matching[:5])}"
        )
    raise ConfigError(f"{run}: no such run under {output_dir} (a folder, or the beginning of a signature)")
