"""Record of a run on disk, the authoritative copy, readable without a server.

outputs/<experiment>/<signature>/
    config.yaml      resolved config            metrics.jsonl   one line per recorded step
    run.json         state, times, versions     checkpoints/  figures/  tables/  references.bib
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from runner.disk.atomic import make_folder, orphans, write_text
from runner.disk.inside import refuse_links
from runner.disk.secrets import mask_secrets
from runner.record import code, facts, lease
from runner.record.facts import REQUIRED_KEY_TYPES, Facts, RunState, load_written
from runner.record.files import FOLDERS
from runner.record.lines import Lines, traces
from runner.record.machine import describe_hardware, disk_failure, find_user, now

if TYPE_CHECKING:
    from runner.compose.job import Job

# output folders of a run, which fresh=true removes
MADE_FOLDERS = ("checkpoints", *FOLDERS)
MADE_FILES = ("metrics.jsonl", "mlflow.json", "posterior.nc")


class Record:
    """Folder of a run, leased while the run is active.

    ``note`` describes damage and its repair.
    """

    note: str | None = None
    is_new = False  # True if the folder has no content of an earlier run

    def __init__(self, folder: Path, facts: Facts):
        self.folder = folder
        self.facts = facts
        self._lease: lease.Lease | None = None
        self._lines = Lines(folder)

    @classmethod
    def open(cls, job: Job, command: Sequence[str] | None = None) -> Record:
        """Open and lease the new or existing folder of a job.

        ``command`` is the recorded command line, by default the command line of this process.

        Raises:
            ConfigError: the folder is not writable, or another process runs the same job.
        """
        record = cls(job.folder, {})
        words = sys.argv[1:] if command is None else command
        try:
            make_folder(job.folder)
            refuse_links(job.folder)
            record._lease = lease.take_lease(job.folder, job.signature)
            for path in orphans(job.folder):
                path.unlink(missing_ok=True)
            record._find(job)
            if record.state != "done":
                record.facts |= {
                    "git": code.commit(job.settings.keep_diff),
                    "versions": code.versions(),
                    "hardware": describe_hardware(job.settings.device),
                    "threads": job.settings.threads,
                    "command": list(map(mask_secrets, words)),
                }
                config = OmegaConf.to_yaml(OmegaConf.create(job.config))
                write_text(job.folder / "config.yaml", config)
                record.save()
        except OSError as error:
            record.close()
            raise disk_failure(error, job.folder) from None
        return record

    def _find(self, job: Job) -> None:
        """Set the facts of an earlier run in this folder, or of a new run."""
        old_facts = load_written(self.folder)
        is_complete = (
            old_facts is not None
            and old_facts.keys() >= REQUIRED_KEY_TYPES.keys()
            and old_facts["signature"] == job.signature
        )
        is_fresh = job.settings.fresh
        if old_facts and is_complete and not is_fresh and not old_facts.get("clearing"):
            self.facts = old_facts
            return
        self.facts = _initial_facts(job)
        self.is_new = not traces(self.folder)
        if self.is_new:
            return
        if not is_fresh and not is_complete:
            self._keep_damaged()
            checkpoints = (self.folder / "checkpoints").glob("r*")
            if all(path.name.startswith("r0000-") for path in checkpoints):
                return  # no replicate is done: the first resumes from its checkpoint
        # an interruption must not leave a partly removed record that appears complete
        self.save(clearing=True)
        for name in MADE_FOLDERS:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in MADE_FILES:
            (self.folder / name).unlink(missing_ok=True)
        del self.facts["clearing"]

    def _keep_damaged(self) -> None:
        """Rename a damaged run.json and describe it in ``note``."""
        path = self.folder / facts.NAME
        what = "was missing"
        if path.exists():
            path.replace(path.with_name(f"{facts.NAME}.damaged"))
            what = "was damaged and has been renamed to run.json.damaged"
        self.note = (
            f"run.json of {self.facts['signature']} {what}; finished replicates are computed again"
        )

    @property
    def code(self) -> Facts:
        """Identity of the running code."""
        return code.identity(self.facts["git"], self.facts["versions"])

    def register_code_version(self, replicate: int, step: int) -> str | None:
        """Record the code that computes from this step on; return its difference from the previous
        code.

        Entries for later steps are removed, because their results are discarded."""
        location = {"replicate": replicate, "step": step}
        earlier = [
            e for e in self.facts.get("code", []) if (e["replicate"], e["step"]) < (replicate, step)
        ]
        last = {k: v for k, v in earlier[-1].items() if k not in location} if earlier else None
        changed = code.difference(last, self.code) if last else None
        if changed or not earlier:
            earlier.append(location | self.code)
        if earlier != self.facts.get("code"):
            self.save(code=earlier)
        return changed

    @property
    def state(self) -> RunState:
        state: RunState = self.facts["state"]
        return state

    def save(self, **changes: Any) -> None:
        """Update run.json atomically.

        Raises:
            LeaseLostError: another process has taken over the run; see also ``flush``, ``sync``.
        """
        self.check()
        self.facts |= changes
        write_text(self.folder / "run.json", json.dumps(self.facts, indent=1))

    def line(self, step: int, replicate: int, seconds: float, phase: str, metrics: Facts) -> None:
        """Append a line to metrics.jsonl.

        Raises:
            LeaseLostError: another process has taken over the run while this one was suspended.
        """
        if self._lease is not None and self._lease.is_unverified:
            self.check()
        entry = {
            "step": step,
            "replicate": replicate,
            "time": round(seconds, 3),
            "phase": phase,
            "metrics": metrics,
        }
        self._lines.add(entry)

    def check(self) -> None:
        """Verify the lease before writing.

        Raises:
            LeaseLostError: another process has taken over the run.
        """
        if self._lease is None:
            return
        try:
            self._lease.check()
        except lease.LeaseLostError:
            self._lines.drop()
            raise

    def flush(self) -> None:
        """Make the lines visible to other processes."""
        self.check()
        self._lines.flush()

    def sync(self) -> None:
        """Flush the lines to disk."""
        self.check()
        self._lines.sync()

    def rewind(self, replicate: int, step: int) -> str | None:
        """Drop the lines that a replicate resumed from a checkpoint of ``step`` writes again;
        reports lost lines.
        """
        return self._lines.rewind(
            replicate, step, {int(r) for r in self.facts["finished"]} - {replicate}
        )

    def remove(self) -> None:
        """Remove the record and the folder of a run without progress."""
        for name in ("config.yaml", facts.NAME, *MADE_FILES):
            (self.folder / name).unlink(missing_ok=True)
        self.close()
        with suppress(OSError):  # not empty
            self.folder.rmdir()
            self.folder.parent.rmdir()

    def close(self) -> None:
        try:
            self._lines.close()
        finally:
            if self._lease is not None:
                self._lease.close()


def _initial_facts(job: Job) -> Facts:
    """Facts of a new run."""
    return {
        "state": "pending",
        "experiment": job.settings.experiment,
        "signature": job.signature,
        "data": job.data,
        "data_state": job.data_state,
        "choice": job.choice,
        "overrides": job.overrides,
        "seed": job.settings.seed,
        "replicates": job.settings.replicates,
        "smoke": job.settings.smoke,
        "study": os.environ.get("RUNNER_STUDY"),
        "user": find_user(),
        "started": now(),
        "ended": None,
        "seconds": 0.0,
        "finished": {},
        "result": {},
        "error": None,
    }
