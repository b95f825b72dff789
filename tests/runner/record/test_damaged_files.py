"""All readers of a finished run report a damaged file and the command that restores it."""

import shutil

import pytest
from matplotlib.figure import Figure
from support.runs.configured import repeatable
from support.runs.made_records import make_record
from support.runs.sketched import save_sketch

from runner.commands import resume
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.errors import RunnerWarning
from runner.execution.execute import run
from runner.record.facts import read, read_facts_or_warn
from runner.record.files import digest_files, find_damage, warn_damage
from runner.report.compared_record import load
from runner.system import doctor

RUN = [
    "dataset=linear_simulation",
    "dataset.n_train=20",
    "dataset.n_test=10",
    "model=linear_regression",
    "inference=sgld",
    "inference.burn_in=2",
    "inference.thinning=1",
    "steps=10",
    "record_every=1",
    "keep_predictions=true",
    "tracking=false",
    "offline=true",
]
KINDS = {
    "config.yaml",
    "metrics.jsonl",
    "references.bib",
    "posterior.nc",
    "figures",
    "predictions",
}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """Overrides of a run, and a copy of its finished record."""
    root = tmp_path_factory.mktemp("finished")
    words = [*RUN, f"output_dir={root / 'outputs'}", f"data_dir={root / 'data'}"]
    job = prepare(compose(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save_sketch)
        run(job)
    shutil.copytree(job.folder, root / "copy")
    return words, job, root / "copy"


@pytest.fixture
def record(finished_run):
    """Folder of the undamaged record."""
    _, job, copy = finished_run
    shutil.rmtree(job.folder)
    shutil.copytree(copy, job.folder)
    return job.folder


def test_every_kind_of_file_is_listed(record):
    files = read(record)["files"]
    assert {name.split("/")[0] for name in files} == KINDS
    assert files == digest_files(record, ["posterior.nc"])
    assert list(find_damage(record, read(record), hashes=True)) == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_truncated_file_is_named_by_each_reader(finished_run, record, kind):
    _, job, _ = finished_run
    name = next(name for name in read(record)["files"] if name.split("/")[0] == kind)
    content = (record / name).read_bytes()
    (record / name).write_bytes(content[: len(content) // 2])
    readers = [lambda: run(job), lambda: read_facts_or_warn(record)]
    readers += [] if kind == "config.yaml" else [lambda: load(record)]
    for reader in readers:
        with pytest.warns(RunnerWarning, match=f"{name} .*; repeat the run with runner resume"):
            reader()
    (finding,) = doctor.records(record.parent.parent)
    assert (finding.level, finding.found) == ("problem", f"{record / name} is damaged")


def test_changed_content_of_equal_size_fails_its_checksum(record):
    (record / "references.bib").write_bytes(bytes((record / "references.bib").stat().st_size))
    assert list(find_damage(record, read(record))) == []
    assert list(find_damage(record, read(record), hashes=True)) == ["references.bib"]


def test_archive_can_lack_the_posterior(record):
    (record / "posterior.nc").unlink()
    assert list(find_damage(record, read(record))) == ["posterior.nc"]
    shutil.rmtree(record / "checkpoints")
    assert list(find_damage(record, read(record))) == []


def test_fresh_resume_writes_the_files_again(record, monkeypatch):
    monkeypatch.setattr(Figure, "savefig", save_sketch)
    facts = read(record)
    (record / "references.bib").unlink()
    assert resume.main(["resume", str(record), "--fresh"]) == 0
    assert list(find_damage(record, read(record), hashes=True)) == []
    assert repeatable(read(record)["result"]) == repeatable(facts["result"])


@pytest.mark.parametrize("files", [{"../x": [1, "a"]}, {"a": None}, {"a\0": [1]}, {"a": {"b": 1}}])
def test_foreign_list_of_files_causes_no_traceback(tmp_path, files):
    folder = make_record(tmp_path, files=files)
    with pytest.warns(RunnerWarning, match="is damaged"):
        warn_damage(folder, read(folder), hashes=True)
