"""Files of a posterior in the run's folder, and messages about incomplete results."""

from pathlib import Path

import pytest
import xarray

from components.errors import ConfigMismatchError
from components.posteriors.draws import Draws
from runner.errors import ConfigError, RunFailure
from runner.execution.execute import run
from runner.execution.storage import artefacts
from runner.record.facts import read
from runner.tracking import handover
from runner.tracking.mirror import Mirror, open_client

MOG = ["+experiment=mog", "smoke=true", "eval_every=60"]


@pytest.mark.slow  # 6 s
def test_draws_are_saved_in_the_folder_and_mlflow(make_job, no_pusher):
    job = make_job(*MOG, "tracking=true", "replicates=2")
    run(job)
    with xarray.open_datatree(job.folder / "posterior.nc", engine="h5netcdf") as tree:
        assert set(tree.posterior.data_vars) == {"x1", "x2"}
        assert tree.posterior.sizes == {"chain": 20, "draw": 10}
    assert read(job.folder)["artefacts"] == ["posterior.nc"]
    mirror = Mirror(job.folder, Path(job.settings.output_dir))
    assert mirror.push()
    client = open_client(Path(job.settings.output_dir))
    assert "posterior.nc" in {a.path for a in client.list_artifacts(mirror.run_id)}


def test_every_posterior_can_write_files(make_job, monkeypatch):
    def artefacts(self, folder):
        (folder / "mine.txt").write_text(f"{self.n_draws} draws")
        return [folder / "mine.txt"]

    monkeypatch.setattr(Draws, "artefacts", artefacts)
    job = make_job(*MOG)
    run(job)
    assert (job.folder / "mine.txt").read_text() == "10 draws"
    assert read(job.folder)["artefacts"] == ["mine.txt"]


def test_too_few_draws_are_announced_once_at_the_end(make_job, capsys):
    run(make_job(*MOG, "replicates=2", "inference.thinning=30"))
    output = capsys.readouterr().out
    assert output.count("ess, ess_tail, rhat: 3 draws per chain are too few, 4 required") == 1
    assert "2 draws per chain" not in output  # at the intermediate evaluation


def test_missing_package_file_is_not_called_an_unwritable_folder(make_job, monkeypatch, tmp_path):
    monkeypatch.setattr(artefacts, "BIBLIOGRAPHY", tmp_path / "elsewhere" / "references.bib")
    job = make_job("+experiment=friend_or_foe", "smoke=true")
    with pytest.raises(
        RunFailure,
        match=r"^FileNotFoundError: .*elsewhere/references.bib \(No such file or directory\); fix this",
    ):
        run(job)
    assert read(job.folder)["state"] == "failed"
    monkeypatch.undo()
    executed, _ = run(job)
    assert executed.record.state == "done"


def test_refused_run_leaves_no_record(make_job, monkeypatch, outputs, tmp_path):
    begun = []
    monkeypatch.setattr(handover.Handover, "begin", lambda self: begun.append(self.folder))
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(20)))
    words = ["dataset=csv", f"dataset.path={table}", "model=ridge", "inference=fit", "steps=1"]
    fits, refused = (
        make_job(*words, "tracking=true", f"dataset.inputs={x}") for x in ("[x]", "[z]")
    )
    with pytest.raises(ConfigError, match=r"dataset.inputs=z: not a column of .*; its columns are"):
        run(refused)
    assert not refused.folder.exists()
    assert begun == []
    run(fits)
    assert set(begun) == {fits.folder}

    def refuse(*_):
        raise ConfigMismatchError("does not fit")

    monkeypatch.setattr(type(fits.inference), "init", refuse)
    again = make_job(*words, "tracking=true", "dataset.inputs=[x]", "fresh=true")
    with pytest.raises(ConfigError, match="does not fit"):
        run(again)
    assert read(again.folder)["error"] == "does not fit"
    monkeypatch.setenv("RUNNER_STUDY", "mine")  # lists the refusal
    with pytest.raises(ConfigError):
        run(refused)
    assert read(refused.folder)["state"] == "failed"
