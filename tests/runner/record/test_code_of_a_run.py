"""A record contains the version of its code by step, and uncommitted changes only on request."""

import json
import subprocess

import pytest

from runner.execution.execute import run
from runner.record import code
from runner.record.facts import read

TOY = ["+experiment=friend_or_foe", "smoke=true", "eval_every=20", "checkpoint_every=10"]
NOW = {"sha": "b" * 40}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Repository with one commit that replaces the runner's."""
    root = tmp_path / "checkout"
    root.mkdir()
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"],
    ):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    monkeypatch.setattr(code, "ROOT", root)
    return root


def test_uncommitted_change_is_a_hash(checkout):
    clean = code.commit()
    assert clean.keys() == {"sha"}
    (checkout / "walk.py").write_text("step = 1\n")
    changed = code.commit()
    assert changed.keys() == {"sha", "diff_sha256"}
    (checkout / "walk.py").write_text("step = 2\n")
    assert code.commit()["diff_sha256"] != changed["diff_sha256"]
    assert "step = 2" in code.commit(keep_diff=True)["diff"]


def test_records_inside_the_checkout_are_no_change(checkout):
    record = checkout / "kept" / "studies" / "one"
    record.mkdir(parents=True)
    (record / "snapshot.yaml").write_text("name: one\n")
    assert code.commit().keys() == {"sha"}
    (checkout / "conf").mkdir()
    (checkout / "conf" / "config.yaml").write_text("seed: 1\n")
    assert code.commit().keys() == {"sha", "diff_sha256"}


def test_repository_around_an_installation_is_not_ours(checkout, monkeypatch):
    inside = checkout / "site-packages"
    inside.mkdir()
    monkeypatch.setattr(code, "ROOT", inside)
    assert code.commit() == {}


def test_other_commits_and_versions_are_listed_on_resume(make_job, prune, monkeypatch, capsys):
    job = make_job(*TOY)
    monkeypatch.setattr(code, "commit", lambda keep_diff=False: {"sha": "a" * 40})
    prune(job)
    old_code = read(job.folder)["code"]
    assert [(e["replicate"], e["step"], e["sha"]) for e in old_code] == [(0, 0, "a" * 40)]
    sidecars = [
        json.loads(path.read_text()) for path in (job.folder / "checkpoints").glob("*.json")
    ]
    assert {s["code"]["sha"] for s in sidecars} == {"a" * 40}
    assert "torch" in sidecars[0]["code"]["versions"]
    monkeypatch.setattr(code, "commit", lambda keep_diff=False: NOW)
    monkeypatch.setattr(
        code, "versions", lambda: sidecars[0]["code"]["versions"] | {"numpy": "9.9"}
    )
    capsys.readouterr()
    run(job)
    (line,) = [
        line
        for line in capsys.readouterr().out.replace("\n ", " ").splitlines()
        if "the code has changed" in line
    ]
    assert "commit aaaaaaaaaa before, bbbbbbbbbb now; numpy" in line
    after = read(job.folder)["code"]
    assert [(e["replicate"], e["step"], e["sha"]) for e in after] == [
        (0, 0, "a" * 40),
        (0, 20, NOW["sha"]),
    ]
    assert after[1]["versions"]["numpy"] == "9.9"


def test_same_code_is_listed_once_without_a_message(make_job, prune, capsys):
    job = make_job(*TOY)
    prune(job)
    run(job)
    assert len(read(job.folder)["code"]) == 1
    assert "the code has changed" not in capsys.readouterr().out


def test_keep_diff_is_not_in_the_signature(make_job, monkeypatch):
    assert make_job(*TOY).signature == make_job(*TOY, "keep_diff=true").signature
    asked = []
    monkeypatch.setattr(code, "commit", lambda keep_diff=False: asked.append(keep_diff) or NOW)
    run(make_job(*TOY, "keep_diff=true"))
    assert asked == [True]
