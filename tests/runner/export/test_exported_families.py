"""Every family is exported and predicts in another process without data and record; MLflow serves
exported models."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from support.runs.exported_families import FAMILIES, HOUSES, TEXTS, TRAIN, fit
from support.runs.local_servers import free_port, wait_for

from components.contracts.predictive import GaussianMixture
from components.topics.counted_corpus import to_word_counts
from components.topics.topic_scores import mean_proportions
from runner import ConfigError, load_model, run
from runner.commands import cli
from runner.tracking.store import connect

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent.parent.parent
ELSEWHERE = """
import sys
from pathlib import Path
from runner import load_model

for file in sorted(Path(".").glob("*.zip")):
    model = load_model(file)
    rows = {"forecasts": None, "topics": "texts.txt"}.get(model.answers, "rows.csv")
    model.predict(rows).to_csv(file.with_suffix(".csv"), index=False)
"""


def expected_of(result, documents):
    """Predictions of the record's problem and posterior."""
    problem = result.problem
    posterior = result.posterior
    if hasattr(problem, "target"):
        predictive = result.predict(problem.test.x)
    elif hasattr(problem, "vocabulary"):
        counts = to_word_counts([line.split() for line in documents], problem.vocabulary)
        return mean_proportions(posterior, counts).numpy()
    elif hasattr(problem, "observations"):
        predictive = problem.forecast(posterior, result._restore.rng)
    else:
        with torch.no_grad():
            clusters = posterior.clusters(problem.test)
            density = posterior.log_predictive(problem.test)
        return torch.cat([clusters, density[:, None]], 1).numpy()
    if not isinstance(predictive, GaussianMixture):
        return predictive.probs[:, 0].numpy()
    if getattr(problem, "y_mean", None) is not None:
        predictive = predictive.rescale(problem.y_mean, problem.y_std)
    return torch.stack([predictive.mean, predictive.variance.sqrt()], 2).flatten(1).numpy()


def numbers(frame):
    """Columns of a written frame that also occur in ``expected_of``."""
    names = [n for n in frame if n.split(": ")[-1] in ("mean", "sd", "log_density")]
    names = [n for n in frame if n.startswith(("p(", "topic "))] + names
    return frame[names].to_numpy()


def test_every_family_predicts_the_same_without_the_data(tmp_path):
    home = tmp_path / "home"
    elsewhere = tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    expected = {}
    for family in FAMILIES:
        result = fit(home, family)
        lines = (home / "data" / TEXTS).read_text().splitlines()
        expected[family] = expected_of(result, lines)
        result.export(elsewhere / f"{family}.zip")
    with (home / "data" / HOUSES).open() as stream:
        rows = list(csv.reader(stream))
    with (elsewhere / "rows.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([row[:3] for row in [rows[0], *rows[1 + TRAIN :]]])
    shutil.copy(home / "data" / TEXTS, elsewhere / "texts.txt")
    shutil.rmtree(home)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RUNNER_DATA_DIR": str(home / "data")}
    subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", ELSEWHERE],
        cwd=elsewhere,
        env=environment,
        check=True,
    )
    assert len(expected) >= 10
    for family, values in expected.items():
        written = pd.read_csv(elsewhere / f"{family}.csv", float_precision="round_trip")
        predicted = numbers(written)
        assert predicted.shape == values.shape, family
        # a frame holds a float32 as the nearest float64
        assert np.array_equal(predicted.astype(values.dtype), values), family


def post(port: int, body: dict) -> dict:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_mlflow_serves_predictions(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    result = fit(tmp_path, "sparse_gp")
    file = result.export(tmp_path / "model.zip")
    words = ["export", str(result.record), "--mlflow", "--register", "houses"]
    assert cli._answer(words) == 0
    address = capsys.readouterr().out.split()[0]
    assert "MLFLOW_TRACKING_URI" not in os.environ
    store = f"sqlite:///{tmp_path / 'outputs' / 'mlflow.db'}"
    client = connect(store)
    version = client.get_model_version("houses", "1")
    logged = client.get_logged_model(address.removeprefix("models:/"))
    assert logged.model_id in version.source
    assert client.get_run(logged.source_run_id).info.experiment_id == logged.experiment_id
    assert not list((tmp_path / "outputs").rglob("*.pkl"))
    rows = pd.DataFrame({"area": [50.5, 90.25], "kind": ["hut", "flat"], "sea": [True, False]})
    expected = load_model(file).predict(rows)
    tools = Path(sys.executable).parent  # the model server is a program in this folder
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": store}
    environment["PATH"] = f"{tools}:{os.environ['PATH']}"
    tool = [sys.executable, "-m", "mlflow", "models"]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    predict = ["predict", "-m", address, "--env-manager", "local", "-i", "rows.csv", "-t", "csv"]
    subprocess.run([*tool, *predict, "-o", "out.json"], cwd=tmp_path, env=environment, check=True)
    answers = json.loads((tmp_path / "out.json").read_text())["predictions"]
    assert answers == expected.to_dict(orient="records")
    port = free_port()
    serve = ["serve", "-m", "models:/houses/1", "--env-manager", "local", "-p", str(port)]
    server = subprocess.Popen(
        [*tool, *serve, "-h", "127.0.0.1"], cwd=tmp_path, env=environment, start_new_session=True
    )
    try:
        wait_for(server, f"http://127.0.0.1:{port}")
        body = {"dataframe_split": rows.to_dict(orient="split")}
        assert post(port, body)["predictions"] == expected.to_dict(orient="records")
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)


def test_topics_of_new_documents_are_predicted(tmp_path):
    result = fit(tmp_path, "topics")
    model = load_model(result.export(tmp_path / "topics.zip"))
    rows = pd.DataFrame({"text": ["apple pear plum", "saw drill drill", None]})
    values = model.predict(rows).to_numpy()
    assert values.sum(1) == pytest.approx([1, 1, 1])
    assert values[0].argmax() != values[1].argmax()
    counts = pd.DataFrame({"saw": [1.0], "drill": [2.0]})
    assert (model.predict(counts).to_numpy() == values[1]).all()
    with pytest.raises(ConfigError, match=r"neither a column text .* word"):
        model.predict(pd.DataFrame({"area": [1.0]}))


def test_posterior_of_a_density_is_not_exportable(tmp_path):
    result = run("moe", "steps=30", smoke=True, tracking=False, output_dir=str(tmp_path / "o"))
    with pytest.raises(ConfigError, match=r"density problem .* new rows"):
        result.export(tmp_path / "moe.zip")
    assert not (tmp_path / "moe.zip").exists()


def test_columns_of_a_built_in_table_are_numbered_and_scaled(tmp_path):
    words = ["dataset.simulated=true", "steps=4", "model.n_inducing=6"]
    places = {"output_dir": str(tmp_path / "o"), "tracking": False}
    result = run("cv_dgp", *words, smoke=True, **places)
    model = load_model(result.export(tmp_path / "dgp.zip"))
    columns = model.columns
    assert [column.name for column in columns.columns] == [f"x{j + 1}" for j in range(5)]
    raw = np.array([[1000.0, 5.0, 0.2, 40.0, 0.01]])
    x = (torch.from_numpy(raw) - columns.mean) / columns.scale
    expected = result.predict(x).rescale(result.problem.y_mean, result.problem.y_std)
    assert model.predict(raw)["mean"].tolist() == expected.mean[:, 0].tolist()
