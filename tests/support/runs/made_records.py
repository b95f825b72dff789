"""Records written by hand, without runs, and their content in MLflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

STARTED = "2026-11-01T12:00:00+00:00"


def make_record(
    output_dir: Path,
    signature: str = "0123456789ab",
    steps: int = 6,
    replicates: int = 1,
    **facts: Any,
) -> Path:
    """Folder of a run with a training line per step, an evaluation every second step, and a final
    line."""
    folder = output_dir / "made" / signature
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for r in range(replicates):
        lines += [
            line(step, r, phase)
            for step in range(1, steps + 1)
            for phase in ("train", "evaluation")
            if phase == "train" or (step % 2 == 0 and step < steps)
        ]
        lines.append(line(steps, r, "final"))
    result = {"rmse": [1.0 / steps + r for r in range(replicates)]}
    fields = {
        "state": "done",
        "experiment": "made",
        "signature": signature,
        "data": "made-data",
        "data_digest": "d" * 16,
        "choice": {"dataset": "made", "model": "bnn", "inference": "sgld", "attacker": None},
        "seed": 0,
        "replicates": replicates,
        "smoke": False,
        "study": None,
        "started": STARTED,
        "ended": "2026-11-01T12:00:20+00:00",
        "seconds": 20.0,
        "finished": {str(r): {"rmse": 1.0 / steps + r} for r in range(replicates)},
        "result": result,
        "error": None,
        "git": {"sha": "a" * 40},
        "user": "somebody",
        "command": ["+experiment=made"],
        "overrides": ["seed=0"],
        "vectorised": False,
    }
    write(folder, lines, fields | facts)
    config = {
        "experiment": "made",
        "description": "made by hand",
        "seed": 0,
        "model": {"name": "bnn", "width": 3},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def line(step: int, replicate: int, phase: str, seconds: float | None = None) -> dict[str, Any]:
    """One line of metrics.jsonl, at one second per step by default."""
    metrics = {"loss": 10.0 / step} if phase == "train" else {"rmse": 1.0 / step + replicate}
    return {
        "step": step,
        "replicate": replicate,
        "time": float(step) if seconds is None else seconds,
        "phase": phase,
        "metrics": metrics,
    }


def write(folder: Path, lines: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    """metrics.jsonl and run.json."""
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "run.json").write_text(json.dumps(facts))


def client_of(output_dir: Path) -> Any:
    """MLflow's own client of the store in an output folder."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{(output_dir / 'mlflow.db').resolve()}")


def history(client: Any, run: Any, key: str) -> list[Any]:
    """Every point of a curve, by step."""
    return sorted(
        client.get_metric_history(run.info.run_id, key),
        key=lambda point: (point.step, point.timestamp),
    )


def read_all_runs(client: Any) -> list[Any]:
    """Comparable content of MLflow for all runs, without parts that differ between stores."""
    rows = []
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id], max_results=5000):
            tags = {
                k: v
                for k, v in run.data.tags.items()
                if k not in ("runner.key", "folder", "mlflow.parentRunId")
            }
            curves = {
                k: [(p.step, p.timestamp, p.value) for p in history(client, run, k)]
                for k in run.data.metrics
            }
            inputs = [(i.dataset.name, i.dataset.digest) for i in run.inputs.dataset_inputs]
            files = sorted(a.path for a in client.list_artifacts(run.info.run_id))
            times = run.info.start_time, run.info.end_time
            rows.append(
                [
                    run.info.run_name,
                    run.info.status,
                    times,
                    run.data.params,
                    tags,
                    curves,
                    inputs,
                    files,
                ]
            )
    return sorted(rows, key=lambda entry: entry[0])
