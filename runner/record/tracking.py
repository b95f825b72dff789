"""MLflow as a mirror of the record on disk: one function pushes what a run's folder holds and MLflow has not got yet.

While a run goes, after it, or days later (``runner sync``), the same code does it; ``mlflow.json`` in the folder says
how far it came.  A server that cannot be reached therefore never stops a run and never loses a number.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.record.atomic import write_text
from runner.record.checks import verdict
from runner.record.record import read, read_lines
from runner.standard_error import mean_se

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "ERROR")  # its news of migrations would break into the display
# MLflow would retry an unreachable server for minutes; the record on disk makes that pointless.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
BATCH = 1000  # metrics in one log_batch call (MLflow's limit)
ENDED = {"done": "FINISHED", "failed": "FAILED", "diverged": "FAILED", "interrupted": "KILLED"}


def tracking_uri(output_dir: Path) -> str:
    """``MLFLOW_TRACKING_URI`` if set, otherwise the sqlite file in the output folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(output_dir / 'mlflow.db').resolve()}"


@contextmanager
def _one_at_a_time(output_dir: Path, uri: str) -> Iterator[None]:
    """sqlite takes one writer at a time, and breaks when two processes create it: a file lock orders them."""
    if not uri.startswith("sqlite"):
        yield
        return
    with (output_dir / ".mlflow.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _client(uri: str) -> Any:
    import logging

    for noisy in ("mlflow", "alembic"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def create_store(output_dir: Path) -> None:
    """Makes the sqlite store once, before several processes need it."""
    uri = tracking_uri(output_dir)
    if uri.startswith("sqlite"):
        output_dir.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(output_dir, uri):
            _client(uri).search_experiments(max_results=1)


def _key(name: str) -> str:
    return re.sub(r"[^\w\-./ :]", "_", name)


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif key != "smoke_overrides":
            yield f"{prefix}{key}", str(value)[:500]


def _metrics(lines: list[dict[str, Any]], looped: bool) -> Iterator[Any]:
    from mlflow.entities import Metric

    for line in lines:
        prefix = f"replicate {line['replicate']}/" if looped and line["replicate"] else ""
        stamp = int(line.get("stamp", 0) or time.time() * 1000)
        for name, value in line["metrics"].items():
            # One curve for many replicates at once: their mean.
            number = sum(value) / len(value) if isinstance(value, list) else value
            yield Metric(_key(f"{prefix}{line['phase']}/{name}"), float(number), stamp, line["step"])


class Mirror:
    """Pushes one run folder to MLflow; ``trouble`` says what kept it from doing so."""

    def __init__(self, folder: Path, output_dir: Path):
        self.folder, self.output_dir = folder, output_dir
        self.uri = tracking_uri(output_dir)
        self.trouble: str | None = None
        self._client: Any = None
        try:
            self.pushed: dict[str, Any] = json.loads((folder / "mlflow.json").read_text())
            if self.pushed["uri"] != self.uri:
                self.pushed = {}
        except (OSError, ValueError, KeyError):
            self.pushed = {}

    def push(self) -> bool:
        """Pushes what is new; True when MLflow has everything.  Never raises: see ``trouble``."""
        try:
            with _one_at_a_time(self.output_dir, self.uri):
                self._push()
            self.trouble = None
        except Exception as error:
            # MLflow's clients raise requests', SQLAlchemy's and their own errors: none of them may stop a run.
            self.trouble = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            self._client = None
        return self.trouble is None

    def _push(self) -> None:
        from mlflow.entities import Param, RunTag

        facts = read(self.folder)
        if facts is None:
            return
        if self._client is None:
            self._client = _client(self.uri)
        client, looped = self._client, not facts.get("vectorised", False) and facts["replicates"] > 1
        if not self.pushed:
            found = client.get_experiment_by_name(facts["experiment"])
            store = (self.output_dir / "mlartifacts").resolve().as_uri() if self.uri.startswith("sqlite") else None
            experiment = found.experiment_id if found else client.create_experiment(facts["experiment"], store)
            name = "-".join(
                v for v in (facts["choice"]["model"], facts["choice"]["inference"], facts["signature"][:8]) if v
            )
            run = client.create_run(experiment, run_name=name)
            self.pushed = {"uri": self.uri, "run_id": run.info.run_id, "lines": 0, "state": None}
            self._save()
            config = self._config()
            params = [Param(_key(k), v) for k, v in _flat(config)]
            for i in range(0, len(params), 100):
                client.log_batch(self.pushed["run_id"], params=params[i : i + 100])
            tags = {"signature": facts["signature"], "data": facts["data"], "git": facts["git"].get("sha", ""),
                    "folder": str(self.folder), "study": facts.get("study") or "", "smoke": facts["smoke"]}  # fmt: skip
            tags |= {role: name or "" for role, name in facts["choice"].items()}
            client.log_batch(self.pushed["run_id"], tags=[RunTag(k, str(v)) for k, v in tags.items()])
            self._lineage(client, facts)
        run_id = self.pushed["run_id"]
        lines = read_lines(self.folder) if (self.folder / "metrics.jsonl").exists() else []
        if self.pushed["lines"] > len(lines):  # a resumed run was rewound: MLflow keeps what it has, same values again
            self.pushed["lines"] = len(lines)
        metrics = list(_metrics(lines[self.pushed["lines"] :], looped))
        for i in range(0, len(metrics), BATCH):
            client.log_batch(run_id, metrics=metrics[i : i + BATCH])
        self.pushed["lines"] = len(lines)
        if facts["state"] in ENDED and self.pushed["state"] != facts["state"]:
            self._end(client, run_id, facts)
            self.pushed["state"] = facts["state"]
        elif facts["state"] == "running" and self.pushed["state"] in ENDED.values():
            client.update_run(run_id, status="RUNNING")
        self._save()

    def _config(self) -> dict[str, Any]:
        from omegaconf import OmegaConf

        config: Any = OmegaConf.to_container(OmegaConf.load(self.folder / "config.yaml"))
        return config

    def _lineage(self, client: Any, facts: dict[str, Any]) -> None:
        """Which data the run used, as MLflow's dataset input."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        source = json.dumps({"dataset": facts["choice"]["dataset"]})
        dataset = Dataset(name=facts["data"], digest=facts["signature"][:8], source_type="runner", source=source)
        client.log_inputs(
            self.pushed["run_id"], datasets=[DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])]
        )

    def _end(self, client: Any, run_id: str, facts: dict[str, Any]) -> None:
        from mlflow.entities import Metric

        stamp = int(time.time() * 1000)
        final = []
        for name, values in facts["result"].items():
            mean, se = mean_se(values)
            final.append(Metric(_key(f"result/{name}"), mean, stamp, 0))
            if len(values) > 1:
                final.append(Metric(_key(f"result/{name} SE"), se, stamp, 0))
        for i in range(0, len(final), BATCH):
            client.log_batch(run_id, metrics=final[i : i + BATCH])
        for name in ("config.yaml", "run.json", "metrics.jsonl", "references.bib", *facts.get("artefacts", [])):
            if (self.folder / name).exists():
                client.log_artifact(run_id, str(self.folder / name))
        checkpoints = ["checkpoints"] if self._config().get("tracking_checkpoints") else []
        for name in ("figures", "tables", *checkpoints):
            if (self.folder / name).is_dir():
                client.log_artifacts(run_id, str(self.folder / name), artifact_path=name)
        client.set_tag(run_id, "state", facts["state"])
        client.set_tag(run_id, "checks", verdict(facts))
        client.set_terminated(run_id, status=ENDED[facts["state"]])

    def _save(self) -> None:
        write_text(self.folder / "mlflow.json", json.dumps(self.pushed))
