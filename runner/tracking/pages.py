"""URLs of MLflow's pages for experiments and runs.

The URLs select the view of runs, because MLflow otherwise opens the traces of language models, which
are empty here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from runner.disk.secrets import mask_secrets
from runner.tracking.marks import read_marks
from runner.tracking.store import store_name, tracking_uri

VIEW = "?workflowType=machine_learning"  # view of model training, not of traces


class Experiment(NamedTuple):
    """An experiment in MLflow."""

    number: str
    name: str


def list_page(server: str) -> str:
    """Page of all experiments."""
    return f"{server.rstrip('/')}/#/experiments{VIEW}"


def runs_page(server: str, experiment: str) -> str:
    """Page of the runs of an experiment."""
    return f"{server.rstrip('/')}/#/experiments/{experiment}/runs{VIEW}"


def run_page(server: str, run_id: str, experiment: str) -> str:
    """Page of a run."""
    return f"{server.rstrip('/')}/#/experiments/{experiment}/runs/{run_id}{VIEW}"


def page_of_record(folder: Path, output_dir: Path, server: str) -> str | None:
    """Page of a record's run, or None if it is not in MLflow."""
    marks = read_marks(folder, store_name(tracking_uri(output_dir), output_dir))
    if marks.run_id is None or marks.experiment is None:
        return None
    return run_page(server, marks.run_id, marks.experiment)


def find_experiments(output_dir: Path) -> list[Experiment]:
    """Experiments of uploaded records, most recently uploaded first."""
    uri = tracking_uri(output_dir)
    pushed = sorted(
        output_dir.glob("*/*/mlflow.json"), key=lambda path: path.stat().st_mtime, reverse=True
    )
    records = [path.parent for path in pushed]
    marks = [(read_marks(folder, store_name(uri, output_dir)), folder) for folder in records]
    return list(
        dict.fromkeys(
            Experiment(mark.experiment, folder.parent.name)
            for mark, folder in marks
            if mark.experiment is not None
        )
    )


def find_server(output_dir: Path) -> str | None:
    """URL of the server in ``MLFLOW_TRACKING_URI``."""
    uri = tracking_uri(output_dir)
    return mask_secrets(uri) if uri.startswith(("http://", "https://")) else None
