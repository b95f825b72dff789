"""Names in configs, studies and records stay inside their folders."""

import pytest

from runner.disk.inside import inside, real_file
from runner.errors import ConfigError
from runner.record.record import Record
from runner.report.run_views import RunView
from runner.study import snapshot
from runner.study.definition import load_study


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", ".", "..", "a\nb"])
def test_names_stay_in_their_folder(tmp_path, name):
    with pytest.raises(ConfigError, match="leads out of its folder; give a plain name"):
        inside(tmp_path, name, "study")


def test_links_to_other_folders_are_not_followed(tmp_path):
    (tmp_path / "record").mkdir()
    (tmp_path / "secret").write_text("")
    (tmp_path / "record" / "posterior.nc").symlink_to(tmp_path / "secret")
    assert inside(tmp_path / "record", "posterior.nc", "artefacts").exists()
    with pytest.raises(ConfigError, match=r"links to a path outside .*; remove the link"):
        real_file(tmp_path / "record", "posterior.nc", "artefacts")


def test_snapshot_names_no_folder_elsewhere(tmp_path):
    study = load_study("moe_mog_table")
    frozen = snapshot.Snapshot("mine", study, "now", "", [], [], tmp_path)
    for facts in (
        {"experiment": "..", "signature": "s"},
        {"experiment": "e", "signature": "../../s"},
    ):
        run = snapshot.FrozenRun("a", "a", {}, [], **facts)
        with pytest.raises(ConfigError, match="leads out of its folder; give a plain name"):
            frozen.folder(run)


def test_linked_record_is_not_written_to(make_job, tmp_path):
    job = make_job("+experiment=friend_or_foe", "smoke=true")
    (job.folder / "figures").mkdir(parents=True)
    (tmp_path / "victim").write_text("mine")
    (job.folder / "figures" / "rewards.png").symlink_to(tmp_path / "victim")
    with pytest.raises(ConfigError, match=r"links to a path outside .*; remove the link"):
        Record.open(job)
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (job.folder / "run.json").exists()


def test_linked_figures_are_not_in_a_report(tmp_path):
    record = tmp_path / "record"
    (record / "figures").mkdir(parents=True)
    (record / "figures" / "own.png").write_bytes(b"own")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (record / "figures" / "theirs.png").symlink_to(tmp_path / "secret.png")
    assert RunView(None, {}, record).pictures == [record / "figures" / "own.png"]
