"""A fitted model shared by the tests of exports, and edited copies of its file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from support.runs.exported_families import fit
from support.runs.sketched import save_sketch

from runner import load_model
from runner.python.export.model_file import MODEL


@pytest.fixture(scope="session")
def exported_model(tmp_path_factory):
    """File of a sparse Gaussian process, its result, and the folder of both."""
    folder = tmp_path_factory.mktemp("fitted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save_sketch)
        result = fit(folder, "sparse_gp")
    return result.export(folder / "fitted.zip"), result, folder


@pytest.fixture(scope="session")
def model(exported_model):
    return load_model(exported_model[0])


@pytest.fixture(scope="session")
def entries(exported_model):
    """Contents of the file by name."""
    with zipfile.ZipFile(exported_model[0]) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def edit(entries, tmp_path):
    """Function that copies the file with other entries (None removes one) or other facts."""

    def write(changes: dict[str, bytes | None], **facts: object) -> Path:
        if facts:
            changes = changes | {MODEL: json.dumps(json.loads(entries[MODEL]) | facts).encode()}
        path = tmp_path / "edited.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (entries | changes).items():
                if content is not None:
                    archive.writestr(name, content)
        return path

    return write
