"""Examples of the documents, run exactly as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.runs.user_folder import run_command, run_python

ROOT = Path(__file__).resolve().parent
while not (ROOT / "pyproject.toml").exists():
    ROOT = ROOT.parent


def read(page: str) -> str:
    """A page of docs."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


EXAMPLES = "\n".join(map(read, ("add_a_component.md", "examples.md", "example_models.md")))
RUN_COMMAND = re.compile(r"^    PYTHONPATH=\. (runner (?!test |arena ).*)$", re.M)


def blocks(text: str) -> dict[str, str]:
    """File name -> content of every fenced block that begins with a comment with a file name."""
    files = {}
    for block in re.findall(r"```\w+\n(.*?)```", text, re.S):
        named = re.match(r"# ([\w./-]+\.(?:py|yaml))\n", block)
        if named:
            files[named.group(1)] = block
    return files


def sections(text: str = EXAMPLES) -> dict[str, str]:
    """Heading of a page, in lower case -> its part of the page."""
    parts = re.split(r"^## (.+)\n", text, flags=re.M)[1:]
    return {name.lower(): text for name, text in zip(parts[::2], parts[1::2], strict=True)}


def write_files(text: str, folder: Path) -> dict[str, str]:
    for name, content in (files := blocks(text)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return files


def run_as_printed(text: str, folder: Path) -> str:
    (command,) = RUN_COMMAND.findall(text)
    printed = run_command(shlex.split(command)[1:], folder)
    assert "record" in printed
    return printed


def test_complete_component_runs(tmp_path):
    text = read("add_a_component.md").split("\n## ")[0]
    files = write_files(text, tmp_path)
    (module,) = (name for name in files if name.endswith(".py") and not name.startswith("test_"))
    assert len(files[module].splitlines()) < 40
    run_as_printed(text, tmp_path)
    (test,) = (name for name in files if name.startswith("test_"))
    done = run_python(["-m", "pytest", "-q", test], tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.slow  # 8 s
def test_own_game_runs(tmp_path):
    pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
    text = sections(read("methods/play.md"))["play a game of your own"]
    assert len(write_files(text, tmp_path)["inspection.py"].splitlines()) < 30
    assert "pettingzoo" in run_as_printed(text, tmp_path)
    (ours,) = re.findall(r"```python\n(from runner.*?)```", text, re.S)
    done = run_python(["-c", f"{ours}\nprint(sorted(rewards))"], tmp_path)
    assert done.stdout.strip() == "['decision_maker', 'opponent_1']", done.stderr


@pytest.mark.slow  # 8 s each; a component of a plug-in is in the fast test_readme_example
@pytest.mark.parametrize(
    "section", ["attacker", "dataset", "model", "gradient", "a method that uses the gradient"]
)
def test_example_of_each_role_runs(section, tmp_path):
    text = sections()[section]
    write_files(text, tmp_path)
    output = run_as_printed(text, tmp_path)
    name = re.search(r'@register\("\w+", "(\w+)"\)', text).group(1)  # type: ignore[union-attr]
    assert name in output


@pytest.mark.slow  # 15 s
def test_example_of_a_sequence_runs(tmp_path):
    text = sections()["sequence"]
    write_files(text, tmp_path)
    (name,) = re.findall(r"^`(\w+\.csv)`", text, re.M)
    (table,) = re.findall(r"```csv\n(.*?)```", text, re.S)
    (tmp_path / name).write_text(table, encoding="utf-8")
    commands = RUN_COMMAND.findall(text)
    assert len(commands) == 2
    for command in commands:
        output = run_as_printed(f"    PYTHONPATH=. {command}", tmp_path)
        assert "missing" in output


@pytest.mark.slow  # 8 s
def test_example_of_a_kernel_runs(tmp_path):
    text = sections()["kernel"]
    write_files(text, tmp_path)
    assert "gpytorch_gp" in run_as_printed(text, tmp_path)


@pytest.mark.slow  # 5 s
def test_gpytorch_kernel_runs(tmp_path):
    (command,) = re.findall(r"^    runner (.*model=gpytorch_gp.*)$", read("choose.md"), re.M)
    words = shlex.split(command, comments=True)
    run_command(words, tmp_path)
    (record,) = (tmp_path / "outputs").glob("*/*/config.yaml")
    assert "RBFKernel + PeriodicKernel" in record.read_text()


def test_own_table_runs(tmp_path):
    text = sections(read("bring_your_own.md"))["a table"]
    (csv,) = re.findall(r"^`customers\.csv`:\n\n```csv\n(.*?)```", text, re.S | re.M)
    assert csv == read("examples/bring_your_own/customers.csv")
    (tmp_path / "customers.csv").write_text(csv, encoding="utf-8")
    (command,) = re.findall(r"^    (runner dataset=csv .*)$", text, re.M)
    printed = run_command(shlex.split(command)[1:], tmp_path)
    assert "age: numbers; city: 3 texts; income: numbers; owner: true or false" in printed
    assert list(tmp_path.glob("outputs/*/*/figures/*.png"))
