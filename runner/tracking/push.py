"""Upload of a record to MLflow: content, order, and marks of uploaded parts.

Each call that changes MLflow is idempotent: a run is found by its key if the reply to its creation
was lost, points have the times of the record, and MLflow stores equal points, parameters, tags and
inputs once.  Uploaded parts are marked after each call, so that a failure of the server neither
loses nor duplicates content.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.record import lease
from runner.record.lines import Line
from runner.tracking.content import Point, RecordContent
from runner.tracking.marks import Marks, MarksFile, RunMarks
from runner.tracking.names import digest
from runner.tracking.record_files import files_to_upload

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH = 1000  # metrics per call (MLflow's limit)
PARAMETER_BATCH_SIZE = 100  # parameters per call
ENDED = {
    "done": "FINISHED",
    "failed": "FAILED",
    "diverged": "FAILED",
    "interrupted": "KILLED",
    "crashed": "KILLED",
    "pruned": "KILLED",
}
KEY = "runner.key"
# pages open with runs and curves, not with traces of chats
EXPERIMENT_KIND_TAG = {"mlflow.experimentKind": "custom_model_development"}


class RunDeletedError(Exception):
    """The run was deleted in MLflow by a user; it is not uploaded again."""


@dataclass
class Push:
    """A push of a run folder, with exclusive access to its ``mlflow.json``."""

    client: MlflowClient
    file: MarksFile
    folder: Path
    files_at: str | None  # artifact location of a new experiment; None if set by the server

    def push(self, content: RecordContent) -> None:
        """Upload new content.

        Raises:
            RunDeletedError, RecordReplacedError, InvalidRecordError: see there.
            Exception: any error of MLflow's client.
        """
        state = self._state(content)
        params = self._uploaded_params(self.file.here)
        marks = self.file.here
        if marks.run_id is None:
            self._make(marks, content, content.run_name, content.starts, content.creation_tags())
        self._parameters(content, params)
        self._tags(content, state)
        self._inputs(content)
        if content.is_looped:
            self._replicates(content, state)
        else:
            self._lines(marks, content, content.lines)
        self._end(content, state)

    def _uploaded_params(self, marks: Marks) -> dict[str, str]:
        """Parameters already in MLflow; the marks are reset if the run is unknown to the store.

        Raises:
            RunDeletedError: the run was deleted.
        """
        if marks.run_id is None:
            return {}
        from mlflow.exceptions import MlflowException

        try:
            run = self.client.get_run(marks.run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            self.file.here = Marks()
            return {}
        if run.info.lifecycle_stage == "deleted":
            raise RunDeletedError
        return dict(run.data.params)

    def _experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        experiment = self.client.get_experiment_by_name(name)
        if experiment is None:
            try:
                tags = dict(EXPERIMENT_KIND_TAG)
                return str(self.client.create_experiment(name, self.files_at, tags))
            except MlflowException:  # created by another process in the meantime
                experiment = self.client.get_experiment_by_name(name)
                if experiment is None:
                    raise
        return str(experiment.experiment_id)

    def _make(
        self, marks: RunMarks, content: RecordContent, name: str, start: int, tags: dict[str, str]
    ) -> None:
        """Create a run, or find it if the reply to its creation was lost."""
        # experiments of the arena's suites become arena/…
        name_here = re.sub(r"^arena\.", "arena/", content.facts["experiment"])
        experiment = self._experiment(name_here)
        if marks.asked:
            matches = self.client.search_runs([experiment], f"tags.`{KEY}` = '{marks.key}'")
            marks.run_id = matches[0].info.run_id if matches else None
        if marks.run_id is None:
            marks.asked = True
            self.file.save()
            run = self.client.create_run(experiment, start, {**tags, KEY: marks.key}, name)
            marks.run_id = run.info.run_id
        marks.experiment = experiment
        self.file.save()

    def _parameters(self, content: RecordContent, known: dict[str, str]) -> None:
        from mlflow.entities import Param

        marks = self.file.here
        if marks.params:
            return
        missing = content.parameters.keys() - known.keys()
        params = [Param(*item) for item in content.parameters.items() if item[0] in missing]
        self._log(marks, PARAMETER_BATCH_SIZE, params=params)
        marks.params = True
        self.file.save()

    def _tags(self, content: RecordContent, state: str) -> None:
        """Update the tags from the record."""
        from mlflow.entities import RunTag

        marks = self.file.here
        tags = {**content.tags(), "state": state, "folder": str(self.folder.resolve())}
        if marks.tags == digest(tags):
            return
        self._log(marks, len(tags), tags=[RunTag(*item) for item in tags.items()])
        marks.tags = digest(tags)
        self.file.save()

    def _inputs(self, content: RecordContent) -> None:
        """Log the run's data as an MLflow dataset input, once their digest is known."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        marks = self.file.here
        facts = content.facts
        if marks.inputs or "data_digest" not in facts:
            return
        source = json.dumps({"dataset": facts["choice"]["dataset"]})
        data = Dataset(facts["data"], facts["data_digest"], "runner", source)
        inputs = [DatasetInput(data, [InputTag("mlflow.data.context", "training")])]
        self.client.log_inputs(_id(marks), datasets=inputs)
        marks.inputs = True
        self.file.save()

    def _lines(self, marks: RunMarks, content: RecordContent, lines: list[Line]) -> None:
        """Upload new lines; lines repeated by a resumed run are skipped."""
        waiting: list[Point] = []
        reached = dict(marks.lines)

        def send() -> None:
            self._points(marks, waiting)
            waiting.clear()
            marks.lines = dict(reached)
            self.file.save()

        for line in lines:
            if line["step"] <= reached.get(line["phase"], -1):
                continue
            points: list[Point] = list(content.points([line]))
            if waiting and len(waiting) + len(points) > BATCH:
                send()
            waiting += points
            reached[line["phase"]] = line["step"]
        if waiting:
            send()

    def _points(self, marks: RunMarks, points: list[Point]) -> None:
        from mlflow.entities import Metric

        self._log(marks, BATCH, metrics=[Metric(*point) for point in points])

    def _log(self, marks: RunMarks, size: int, **entities: list[Any]) -> None:
        """Log parameters, tags or metrics of a run in batches of ``size``."""
        for kind, values in entities.items():
            for i in range(0, len(values), size):
                self.client.log_batch(_id(marks), **{kind: values[i : i + size]})

    def _replicates(self, content: RecordContent, state: str) -> None:
        """Create a nested run for each sequential replicate."""
        finished = content.facts["finished"]
        for replicate in sorted({line["replicate"] for line in content.lines}):
            marks = self.file.here.replicates.setdefault(str(replicate), RunMarks())
            start, end = content.span(replicate)
            if marks.run_id is None:
                tags = {"mlflow.parentRunId": _id(self.file.here), "replicate": str(replicate)}
                name = f"{content.run_name} replicate {replicate + 1}/{content.facts['replicates']}"
                self._make(marks, content, name, start, {**content.creation_tags(), **tags})
            self._lines(
                marks, content, [line for line in content.lines if line["replicate"] == replicate]
            )
            now = "done" if str(replicate) in finished else state
            self._set(marks, now, now, end)

    def _state(self, content: RecordContent) -> str:
        """State of the record; a running state without a process means that the run was killed."""
        state: str = content.facts["state"]
        if state not in ("running", "pending") or not (self.folder / lease.NAME).exists():
            return state
        return "running" if lease.is_leased(self.folder / lease.NAME) else "crashed"

    def _set(self, marks: RunMarks, state: str, end: str, stamp: int) -> None:
        """Set the state of a run: running, or ended at a given time."""
        if state in ENDED and marks.ended != end:
            self.client.set_terminated(_id(marks), ENDED[state], stamp)
            marks.ended = end
        elif state not in ENDED and marks.ended is not None:
            self.client.update_run(_id(marks), status="RUNNING")
            marks.ended = None
        else:
            return
        self.file.save()

    def _end(self, content: RecordContent, state: str) -> None:
        marks = self.file.here
        end = content.describe_end(state)
        if state in ENDED and marks.ended != end:
            self._points(marks, content.result)
            self._files(content)
        self._set(marks, state, end, content.ends)

    def _files(self, content: RecordContent) -> None:
        marks = self.file.here
        for path in list(files_to_upload(self.folder, content)):
            name = str(path.relative_to(self.folder))
            stat = path.stat()
            stamp = f"{stat.st_size} {stat.st_mtime_ns}"
            if marks.files.get(name) != stamp:
                below = str(Path(name).parent)
                self.client.log_artifact(_id(marks), str(path), None if below == "." else below)
                marks.files[name] = stamp
                self.file.save()


def _id(marks: RunMarks) -> str:
    assert marks.run_id is not None
    return marks.run_id
