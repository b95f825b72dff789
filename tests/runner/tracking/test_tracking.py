"""The content of a run in MLflow matches its record."""

import shlex
import shutil
from datetime import datetime
from pathlib import Path

import pytest
import torch
from support.runs.configured import made_job
from support.runs.made_records import client_of, history, make_record

from runner.execution.assembly import load_problem
from runner.execution.data_digest import data_digest
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.record.facts import read
from runner.record.lines import read_lines
from runner.tracking.mirror import Mirror, open_client

pytestmark = pytest.mark.usefixtures("no_pusher")
GAME = ["+experiment=friend_or_foe", "smoke=true", "tracking=true"]


@pytest.fixture(scope="module")
def mirrored_run(tmp_path_factory, empty_store):
    """(job, client, run) of a run with intermediate evaluations and sequential replicates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        folder = tmp_path_factory.mktemp("truth")
        (folder / "outputs").mkdir()
        shutil.copy(empty_store, folder / "outputs" / "mlflow.db")
        job = made_job(
            folder,
            "+experiment=bnn_uci",
            "smoke=true",
            "replicates=2",
            "steps=30",
            "eval_every=10",
            "record_every=10",
            "description=purpose of the run",
        )
        run(job)
        mirror = Mirror(job.folder, Path(job.settings.output_dir))
        assert mirror.push(), mirror.trouble
        client = open_client(Path(job.settings.output_dir))
        yield job, client, client.get_run(mirror.run_id)


def test_result_state_parameters_and_files_are_stored(mirrored_run):
    job, client, run = mirrored_run
    facts = read(job.folder)
    assert run.info.status == "FINISHED"
    assert run.data.params["inference.name"] == job.choice["inference"]
    assert run.data.params["steps"] == "30"
    for name, values in facts["result"].items():
        assert run.data.metrics[f"result/{name}"] == pytest.approx(sum(values) / 2)
        assert f"result/{name} SE" in run.data.metrics
    assert {a.path for a in client.list_artifacts(run.info.run_id)} >= {
        "config.yaml",
        "run.json",
        "metrics.jsonl",
    }
    assert "checkpoints" not in {a.path for a in client.list_artifacts(run.info.run_id)}


def test_user_code_and_versions_are_stored(mirrored_run):
    job, _, run = mirrored_run
    facts = read(job.folder)
    tags = run.data.tags
    assert "=" in run.info.run_name.split()[0], "what differs from other runs comes first"
    assert run.info.run_name.endswith(f" bnn_uci {job.signature[:8]}")
    assert "replicates=2" in run.info.run_name.split()
    assert "steps=30" in run.info.run_name.split()
    assert "output_dir" not in run.info.run_name
    assert tags["mlflow.user"] == facts["user"]
    assert shlex.split(tags["mlflow.source.name"])[1:] == facts["command"]
    assert tags["mlflow.source.git.commit"] == tags["git"] == facts["git"]["sha"]
    assert tags["mlflow.note.content"] == "purpose of the run"
    assert (tags["signature"], tags["data"], tags["state"]) == (job.signature, job.data, "done")
    assert tags["checks"] == "1 passed, 1 not checked"  # a smoke run


def test_experiments_open_in_the_model_view(mirrored_run):
    _, client, run = mirrored_run
    assert (
        client.get_experiment(run.info.experiment_id).tags["mlflow.experimentKind"]
        == "custom_model_development"
    )


def test_start_and_duration_are_stored(mirrored_run):
    job, _, run = mirrored_run
    facts = read(job.folder)
    assert run.info.start_time == 1000 * datetime.fromisoformat(facts["started"]).timestamp()
    assert run.info.end_time - run.info.start_time == pytest.approx(1000 * facts["seconds"], abs=1)


def test_replicates_are_child_runs_with_complete_curves(mirrored_run):
    job, client, run = mirrored_run
    below = client.search_runs(
        [run.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
    )
    assert {child.data.tags["replicate"] for child in below} == {"0", "1"}
    assert {child.info.run_name[-13:] for child in below} == {"replicate 1/2", "replicate 2/2"}
    elapsed = 0.0
    for child in sorted(below, key=lambda child: child.data.tags["replicate"]):
        lines = [
            r for r in read_lines(job.folder) if str(r["replicate"]) == child.data.tags["replicate"]
        ]
        assert child.info.status == "FINISHED"
        for phase in ("train", "evaluation", "final"):
            for name in {
                name for line in lines if line["phase"] == phase for name in line["metrics"]
            }:
                expected = [
                    (line["step"], line["metrics"][name], round(1000 * (elapsed + line["time"])))
                    for line in lines
                    if line["phase"] in ({phase, "final"} if phase == "evaluation" else {phase})
                    and name in line["metrics"]
                ]
                points = history(client, child, f"{phase}/{name}")
                assert [(p.step, p.value) for p in points] == [e[:2] for e in expected]
                times = [p.timestamp - run.info.start_time for p in points]
                assert times == pytest.approx([e[2] for e in expected], abs=1)
        assert history(client, child, "evaluation/rmse")[-1].step == 30
        elapsed += lines[-1]["time"]
    assert not [name for name in run.data.metrics if not name.startswith("result/")]


def test_digest_is_that_of_the_data(mirrored_run, tmp_path):
    job, _, run = mirrored_run
    (dataset_input,) = run.inputs.dataset_inputs
    assert (dataset_input.dataset.name, dataset_input.dataset.digest) == (
        job.data,
        read(job.folder)["data_digest"],
    )
    given = ["+experiment=bnn_uci", "smoke=true", "replicates=1", "steps=2"]
    digests = []
    for other in ([], ["inference.step_size=0.1"], ["dataset.split=1"]):
        again = made_job(tmp_path, *given, *other)
        problem = load_problem(again, Streams(again.settings.seed, 0, torch.device("cpu")))
        digests.append(data_digest(problem, again.config["dataset"]))
    assert digests[0] == digests[1] == dataset_input.dataset.digest  # other settings, the same data
    assert digests[2] != digests[0]  # another split


def test_problem_without_data_is_identified_by_its_settings(tmp_path):
    digests = []
    for other in ([], ["seed=1"], ["inference=level_k"], ["dataset.episodes=7"]):
        job = made_job(tmp_path, "+experiment=friend_or_foe", "smoke=true", *other)
        problem = load_problem(job, Streams(job.settings.seed, 0, torch.device("cpu")))
        digests.append(data_digest(problem, job.config["dataset"]))
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_checkpoints_are_copied_on_request_without_a_new_hash(make_job, outputs):
    job = make_job(*GAME, "tracking_checkpoints=true")
    assert job.signature == make_job(*GAME).signature
    run(job)
    mirror = Mirror(job.folder, Path(job.settings.output_dir))
    assert mirror.push()
    client = open_client(Path(job.settings.output_dir))
    (path,) = {a.path for a in client.list_artifacts(mirror.run_id)} & {"checkpoints"}
    assert client.list_artifacts(mirror.run_id, path)


def test_moved_outputs_remain_the_same_runs(outputs):
    from mlflow.tracking._tracking_service.utils import _artifact_repos_cache

    folder = make_record(outputs, state="interrupted", result={})
    first = Mirror(folder, outputs)
    assert first.push(), first.trouble
    run_id = first.run_id
    elsewhere = outputs.parent / "there"
    shutil.move(outputs, elsewhere)
    moved_record = make_record(elsewhere)  # the run has continued since
    _artifact_repos_cache.clear()  # MLflow's cache of file locations, which another process lacks
    second = Mirror(moved_record, elsewhere)
    assert second.push(), second.trouble
    assert second.run_id == run_id
    client = client_of(elsewhere)
    (run,) = client.search_runs([client.get_run(run_id).info.experiment_id])
    assert run.info.status == "FINISHED"
    assert {"run.json", "config.yaml"} <= {a.path for a in client.list_artifacts(run_id)}
    assert not outputs.exists()
