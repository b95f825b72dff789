"""``runner archive``: packed files, readers, and refused archives."""

from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from pathlib import Path

import pytest
import yaml
from support.runs.made_records import make_record

from runner import compare, load
from runner.commands.cli import _answer
from runner.errors import ConfigError
from runner.report import command
from runner.report.exchange import archive, citation, opened
from runner.report.exchange.opened import MANIFEST, open_archive
from runner.study import snapshot as snapshots
from runner.study.definition import StudyDefinition
from runner.study.snapshot import FrozenRun, Snapshot

STUDY = StudyDefinition(
    name="small",
    description="two rows",
    rows=[
        {"label": name, "model": name, "preset": "", "experiment": "made"} for name in ("A", "B")
    ],
    tables=[{"name": "t", "title": "", "columns": {"error": "rmse"}}],
)


@pytest.fixture
def launched_study(tmp_path):
    """A study with two finished runs."""
    runs = []
    for row in ("a", "b"):
        signature = row * 12
        runs.append(FrozenRun(row.upper(), row.upper(), {}, [], "made", signature, "made-data"))
        folder = make_record(tmp_path / "outputs", signature, replicates=2, artefacts=["post.nc"])
        (folder / "checkpoints").mkdir()
        (folder / "checkpoints" / "r0000-s000000006.safetensors").write_bytes(b"state")
        (folder / "post.nc").write_bytes(b"draws")
        (folder / "mlflow.json").write_text("{}")
        (folder / ".run.json.123").write_text("{")
        (folder / "away.txt").symlink_to("/etc/hostname")
    snapshot = Snapshot("small", STUDY, "2026-11-01", "c" * 40, [], runs, tmp_path / "outputs")
    snapshots.save(snapshot)
    return snapshot


@pytest.fixture
def quick_report(monkeypatch):
    monkeypatch.setattr(
        archive, "write", lambda name, study, snapshot, folder: (folder / "a.md").write_text("page")
    )


def names_in(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as packed:
        return set(packed.namelist())


def test_archive_has_records_environment_and_report(launched_study, quick_report, tmp_path):
    path = tmp_path / "small.zip"
    archive.pack(launched_study, path)
    record = {
        f"made/{row * 12}/{name}"
        for row in "ab"
        for name in ("run.json", "config.yaml", "metrics.jsonl")
    }
    names = names_in(path)
    assert names - {"environment/requirements.lock"} == record | {
        *citation.NAMES,
        MANIFEST,
        "studies/small/snapshot.yaml",
        "environment/environment.json",
        "environment/packages.txt",
        "report/a.md",
    }
    with open_archive(str(path)) as opened:
        facts = json.loads((opened.folder / "environment" / "environment.json").read_text())
        assert facts["commits_of_runs"] == ["a" * 40]
        loaded = snapshots.load(opened.study, opened.folder)
        assert [loaded.state(run) for run in loaded.runs] == ["done", "done"]
        folder = opened.folder
    assert not folder.exists()
    first = path.read_bytes()
    archive.pack(launched_study, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(("author", "licence"), [('Ada "A." Lovelace', "CC-BY-4.0"), ("lab", None)])
def test_archive_has_a_citation(launched_study, quick_report, tmp_path, author, licence):
    archive.pack(launched_study, tmp_path / "small.zip", author=author, licence=licence)
    with zipfile.ZipFile(tmp_path / "small.zip") as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    citing, crate = (files.pop(name) for name in citation.NAMES)
    cited = yaml.safe_load(citing)
    names = {"given-names": 'Ada "A."', "family-names": "Lovelace"} if licence else {"name": "lab"}
    assert (cited["authors"], cited["date-released"]) == ([names], "2026-11-01")
    assert cited.get("license") == licence
    entities = {entity["@id"]: entity for entity in json.loads(crate)["@graph"]}
    assert entities["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    root = entities["./"]
    assert {"name", "description", "datePublished", "license"} <= set(root)
    assert entities[root["author"]["@id"]]["name"] == author
    assert not licence or entities[root["license"]["@id"]]["name"] == licence
    listed = {part["@id"] for part in root["hasPart"]}
    assert listed == {"CITATION.cff", *files} - {MANIFEST}
    for name in listed - {"CITATION.cff"}:
        assert entities[name]["sha256"] == hashlib.sha256(files[name]).hexdigest()
        assert entities[name]["contentSize"] == str(len(files[name]))


def test_checkpoints_and_posteriors_are_optional(launched_study, quick_report, tmp_path):
    path = tmp_path / "small.zip"
    archive.pack(launched_study, path, checkpoints=True)
    names = names_in(path)
    assert "made/aaaaaaaaaaaa/checkpoints/r0000-s000000006.safetensors" in names
    assert "made/aaaaaaaaaaaa/post.nc" in names
    assert not any(name.endswith(("mlflow.json", "away.txt", ".123")) for name in names)


def test_damaged_compressed_bytes_are_one_message(launched_study, quick_report, tmp_path):
    path = tmp_path / "small.zip"
    archive.pack(launched_study, path)
    with zipfile.ZipFile(path) as file:
        info = file.getinfo(MANIFEST)
    content = bytearray(path.read_bytes())
    first = info.header_offset + 30 + len(MANIFEST)
    content[first : first + 2] = b"\xff\xff"  # not a block type of deflate
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="damaged or not an archive"), open_archive(str(path)):
        pass


def test_compare_opens_an_archive_without_records(
    launched_study, quick_report, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "small.zip"
    archive.pack(launched_study, path)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert _answer(["compare", str(path)]) == 0
    assert "result\trmse\t0.6667 ± 0.5 (n=2)" in capsys.readouterr().out
    assert _answer(["compare", str(path), "aaaa", "bbbb"]) == 0
    assert _answer(["compare", str(path), "aaaa"]) == 2
    alike = compare(path)
    assert alike.scores.columns.get_level_values(0).unique().tolist() == ["aaaaaaaa", "bbbbbbbb"]
    assert compare(path, x="aaaa", y="bbbb").scores["x"].equals(alike.scores["aaaaaaaa"])
    assert load("bbbb", output_dir=path).id == "b" * 12
    with pytest.raises(ConfigError, match="no such run"):
        load("cccc", output_dir=path)
    assert list(empty.iterdir()) == []


@pytest.mark.slow
def test_report_opens_an_archive_without_records(launched_study, tmp_path, capsys, monkeypatch):
    path = tmp_path / "small.zip"
    words = ["archive", "small", "--output-dir", str(launched_study.output_dir), "--to", str(path)]
    assert _answer(words) == 0
    times = {file: file.stat().st_mtime_ns for file in launched_study.output_dir.rglob("*")}
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert _answer(["report", str(path)]) == 0
    made = empty / "outputs" / "small" / "archived_report"
    with zipfile.ZipFile(path) as packed:
        for name in ("small.md", "small_replicates.csv", "small_origin.json"):
            assert (made / name).read_bytes() == packed.read(f"report/{name}")
    assert {file: file.stat().st_mtime_ns for file in launched_study.output_dir.rglob("*")} == times


def test_study_that_was_not_launched_has_no_archive(tmp_path, capsys):
    assert _answer(["archive", "nonsuch", "--output-dir", str(tmp_path)]) == 2
    assert "study nonsuch was never launched under" in capsys.readouterr().err


def pack(path: Path, entries: dict[str | zipfile.ZipInfo, bytes], **manifest) -> str:
    """An archive made by hand."""
    names = {getattr(name, "filename", name): content for name, content in entries.items()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in names.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
        facts = {"format": 1, "study": "small", "files": digests} | manifest
        made.writestr(MANIFEST, json.dumps(facts))
    return str(path)


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("entries", "manifest", "message"),
    [
        ({"../evil.txt": b"x"}, {}, "leads out of its folder"),
        ({"a/../../evil.txt": b"x"}, {}, "leads out of its folder"),
        ({"/evil.txt": b"x"}, {}, "leads out of its folder"),
        ({"c:\\evil.txt": b"x"}, {}, "is not plain"),
        ({"..\\evil.txt": b"x"}, {}, "is not plain"),
        ({link("evil"): b"/etc/hostname"}, {}, "is a link, a folder or encrypted"),
        ({"folder/": b""}, {}, "is a link, a folder or encrypted"),
        ({"a.txt": b"x"}, {"files": {}}, "its files differ from the list in archive.json"),
        ({"a.txt": b"x"}, {"files": {"a.txt": "0" * 64}}, "a.txt differs from the archived file"),
        ({"a.txt": b"0" * 30_000_000}, {}, "a.txt expands more than 1000 times"),
        ({f"{i}.txt": b"0" * 9_000_000 for i in range(4)}, {}, "expands more than 100 times"),
        ({"a.txt": b"x"}, {"format": 2}, "format 2, but this version reads 1"),
        ({"a.txt": b"x"}, {"study": 3}, "has no valid archive.json"),
    ],
)
def test_invalid_archive_is_refused(entries, manifest, message, tmp_path):
    source = pack(tmp_path / "evil.zip", entries, **manifest)
    with pytest.raises(ConfigError, match=message) as error, open_archive(source):
        pass
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("evil.txt"))


def test_sizes_and_numbers_of_files_are_limited(tmp_path, monkeypatch):
    source = pack(tmp_path / "many.zip", {f"{i}.txt": b"x" for i in range(4)})
    monkeypatch.setattr(opened, "MAX_FILES", 3)
    with pytest.raises(ConfigError, match="more than 3 files"), open_archive(source):
        pass
    monkeypatch.setattr(opened, "MAX_FILES", 9)
    monkeypatch.setattr(opened, "MAX_BYTES", 3)
    with pytest.raises(ConfigError, match="not opened"), open_archive(source):
        pass


def test_file_that_is_not_zip_is_refused_in_one_line(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 and no more")
    for source, message in (
        (path, "damaged or not an archive"),
        (tmp_path / "b.zip", "no such file"),
    ):
        with pytest.raises(ConfigError, match=message), open_archive(str(source)):
            pass
    source = pack(path, {"a.txt": b"x"}, study="../../etc")
    with pytest.raises(ConfigError, match="leads out of its folder"):
        command.main(["report", source])
