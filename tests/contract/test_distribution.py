"""Distribution: the image, the source distribution, the page of the index, and the workflows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from scripts import release

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "docs/ci-example.yml"]
NOT_COPIED = (".git", ".venv*", "build", "dist", "outputs", "data", "__pycache__", "*.egg-info")


def is_ignored(path: str) -> bool:
    """True if the last matching rule of .dockerignore excludes a path."""
    ignored = False
    for rule in (ROOT / ".dockerignore").read_text(encoding="utf-8").split():
        if fnmatch(path, rule.removeprefix("!")):
            ignored = not rule.startswith("!")
    return ignored


def read_copied_names() -> set[str]:
    """Sources of the COPY lines of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    return {name for line in re.findall(r"^COPY (.+) \S+$", text, re.M) for name in line.split()}


def test_image_copies_existing_files():
    copied = read_copied_names()
    assert [name for name in copied if not (ROOT / name).exists() or is_ignored(name)] == []
    packages = tomllib.loads(PYPROJECT)["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.removesuffix("*") for name in packages} <= copied
    assert is_ignored("tests")


def test_actions_are_pinned_and_jobs_are_limited():
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        uses = re.findall(r"uses: (.*)", text)
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", use) for use in uses), path
        assert text.count("actions/checkout@") == text.count("persist-credentials: false"), path
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {}, path
        for job in workflow["jobs"].values():
            assert "permissions" in job, path
            assert job["timeout-minutes"] <= 90, path


def test_release_makes_links_absolute(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "ROOT", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "README.md").write_text(
        "![a](docs/a.png) [b](docs/b.md#c) [d](https://e.org) [f](#g)\n\n    [code](no.md)\n"
    )
    with pytest.raises(SystemExit, match="not the version"):
        release.main(["https://git.example/us/it", "v0"])
    project = tomllib.loads(PYPROJECT)["project"]
    tag = f"v{project['version']}"
    release.main(["https://git.example/us/it", tag])
    assert (tmp_path / "README.md").read_text() == (
        f"![a](https://git.example/us/it/raw/{tag}/docs/a.png) "
        f"[b](https://git.example/us/it/blob/{tag}/docs/b.md#c) [d](https://e.org) [f](#g)\n\n"
        "    [code](no.md)\n"
    )
    released = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert released.pop("urls")["Source"] == "https://git.example/us/it"
    assert released == project


def test_author_and_version_match_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads(PYPROJECT)["project"]
    assert project["authors"] == citation["authors"]
    assert project["version"] == citation["version"]


@pytest.mark.slow
def test_source_distribution_has_tests_documents_and_citation(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    (path,) = tmp_path.glob("bayes_runner-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (*read_copied_names(), "CITATION.cff", "CHANGELOG.md", "Makefile", "mkdocs.yml"):
        assert name in names
    files = {
        str(path.relative_to(ROOT))
        for folder in ("docs", "tests", "conf", "hydra_plugins")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert files - names == set()
    assert not [name for name in names if "__pycache__" in name or name.startswith("build/")]
