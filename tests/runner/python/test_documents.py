"""docs/python.md and its notebook, executed from top to bottom."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from components.problems.supervised import Supervised
from runner import RunnerWarning

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Working folder of a user, without data files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNNER_DATA_DIR", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))


def test_every_line_of_the_page_runs(elsewhere, capsys, monkeypatch):
    # figures take most of the time and are not on the page
    monkeypatch.setattr(Supervised, "draw", lambda *_: {})
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter")
        warnings.filterwarnings("error", category=RunnerWarning)
        warnings.filterwarnings("ignore", message="inference=\\w+: ignoring .* of the experiment")
        for block in re.findall(r"```python\n(.*?)```", text, re.S):
            exec(block, names)
    assert (
        "model.prior_scal: unknown key, did you mean model.prior_scale?" in capsys.readouterr().out
    )
    assert len(names["table"]) == 3
    assert set(names["comparison"].tests.a) == {"cavi", "gibbs"}


@pytest.mark.slow  # 15 s
def test_notebook_runs_and_is_stored_without_outputs(elsewhere):
    notebook = nbformat.read(DOCS / "notebooks" / "first_steps.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [cell for cell in cells if cell.outputs or cell.execution_count], "clear its outputs"
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    by_source = {cell.source: cell.outputs for cell in cells}
    streams = [
        line for outputs in by_source.values() for line in outputs if line.output_type == "stream"
    ]
    assert [
        line.text for line in streams if line.name == "stderr" and "Pareto" not in line.text
    ] == []
    (complaint,) = next(
        outputs for source, outputs in by_source.items() if "except RunnerError" in source
    )
    assert complaint.text == "model.prior_scal: unknown key, did you mean model.prior_scale?\n"
