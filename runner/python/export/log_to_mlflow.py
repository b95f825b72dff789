"""Logging of a fitted model to MLflow: to the entry of its run, and to the registry."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

from runner.disk.secrets import mask_secrets
from runner.errors import RunFailure, first_line
from runner.python.export.load_model import load_model
from runner.python.export.mlflow_rows import ARTIFACT, make_example, predict_rows
from runner.record.code import installed_version
from runner.tracking.mirror import Mirror
from runner.tracking.store import one_at_a_time, remove_stray_folders

CODE = Path(__file__).with_name("mlflow_model.py")
SECONDS = 300.0  # timeout for other processes that hold the store


def log_to_mlflow(file: Path, record: Path, requirements: list[str], register: str | None) -> str:
    """Log a model's file as a pyfunc model, from code and without pickle.

    The run is uploaded first if it is not in the store.

    Args:
        file: file of the fitted model.
        record: folder of its run; its output folder determines the store.
        requirements: packages for predictions, with versions.
        register: registered model that gets a new version; None for no registration.

    Returns:
        URI of the model, ``models:/…``.

    Raises:
        RunFailure: the store is not reachable or refuses the model.
    """
    output_dir = record.parent.parent
    mirror = Mirror(record, output_dir, seconds=SECONDS)
    if not mirror.push() or mirror.run_id is None:
        reason = mirror.trouble or "the run was deleted there"
        raise RunFailure(f"export: the run is not in MLflow: {reason}; the record is unchanged")
    from mlflow.exceptions import MlflowException

    try:
        with (
            one_at_a_time(mirror.uri, SECONDS),
            remove_stray_folders(mirror.uri),
            _tracking_to(mirror.uri),
            redirect_stderr(io.StringIO()),  # progress bars and notes of MLflow
        ):
            return _log(file, mirror.run_id, requirements, register)
    except MlflowException as error:
        message = mask_secrets(first_line(error))
        raise RunFailure(f"export: MLflow refused the model: {message}") from None


@contextmanager
def _tracking_to(uri: str) -> Iterator[None]:
    """Context that sets the store of MLflow's functions for this process."""
    import mlflow

    previous = os.environ.get("MLFLOW_TRACKING_URI")  # None if unset
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(previous)


def _log(file: Path, run_id: str, requirements: list[str], register: str | None) -> str:
    """Log the model to the experiment of its run; return its URI."""
    import mlflow
    from mlflow import MlflowClient
    from mlflow.models import Model, infer_signature

    client = MlflowClient()
    experiment = client.get_run(run_id).info.experiment_id
    logged = client.create_logged_model(experiment, name=ARTIFACT, source_run_id=run_id)
    model = load_model(file)
    example = make_example(model)
    stored: Model = Model.log(
        None,
        mlflow.pyfunc,
        name=ARTIFACT,
        run_id=run_id,
        model_id=logged.model_id,
        python_model=str(CODE),
        artifacts={ARTIFACT: str(file)},
        signature=infer_signature(example, predict_rows(model, example)),
        input_example=example,
        pip_requirements=[*requirements, f"mlflow=={installed_version('mlflow')}"],
        registered_model_name=register,
        metadata={name: model.facts[name] for name in ("run", "experiment", "data")},
    )
    return str(stored.model_uri)
