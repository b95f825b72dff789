"""Commands of docs/bring_your_own.md run in shortened form in a folder with its examples."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.runs.user_folder import run_command, run_python

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "bring_your_own"
PAGE = (ROOT / "docs" / "bring_your_own.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    PYTHONPATH=\. (.*)$", PAGE, re.M)
TRAINED = [command for command in COMMANDS if command.startswith("python")]
RUNS = [command for command in COMMANDS if command.startswith("runner")]
# What makes the rest short: later words win.
SHORT = {
    "inference=swag": [
        "steps=6",
        "inference.burn_in=2",
        "inference.every=1",
        "inference.norm_rows=64",
    ],
    "inference=sgld": [
        "steps=8",
        "inference.burn_in=2",
        "inference.thinning=1",
        "inference.chains=2",
    ],
    "inference=map": ["steps=5"],
    "inference=mean_field_vi": ["steps=3", "inference.n_predict=2"],
    "inference=lbfgs": ["steps=2"],
    "inference=dsvi": ["steps=2", "inference.n_predict=2", "model.n_inducing=5"],
    "inference=nuts": ["steps=12", "inference.warmup=6", "inference.chains=2"],
    "inference=full_rank_vi": ["steps=5"],
    "attacker=pgd": ["attacker.steps=2", "attacker.eps=[0.1]", "dataset.n_test=20"],
    "attacker=fgsm": ["attacker.eps=[0.1]", "dataset.n_test=20"],
}

PACKAGES = {"dataset=stan": "stanli", "dataset=numpyro": "numpyro", "dataset=pymc": "pymc"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with the examples and the weights of the page after two steps each."""
    place = tmp_path_factory.mktemp("own") / "examples"
    shutil.copytree(EXAMPLES, place, ignore=shutil.ignore_patterns("__pycache__"))
    trained = f"""
import sys
sys.path.insert(0, {str(place)!r})
import train_elsewhere
for words in {[shlex.split(command)[2:] for command in TRAINED]!r}:
    train_elsewhere.main(*words, steps=2)
"""
    done = run_python(["-c", trained], place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accuracy") == len(TRAINED)
    return place


def shorten(command: str) -> list[str]:
    words = shlex.split(command)[1:]
    more = [word for start, short in SHORT.items() if start in words for word in short]
    changed = {word.split("=")[0] for word in more}
    return [word for word in words if word.split("=")[0] not in changed] + more


def test_page_shows_the_described_files():
    assert len(TRAINED) == 3
    assert len(RUNS) == 19
    files = "\n".join(path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py")))
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(blocks) == 5
    assert all(block.strip() in files for block in blocks)


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
def test_every_command_runs(command, folder):
    words = [*shorten(command), "output_dir=out"]
    for package in (package for key, package in PACKAGES.items() if key in words):
        pytest.importorskip(package, reason=f"{package} is not installed")
    assert "record" in run_command(words, folder)


@pytest.mark.slow  # 17 s
def test_first_command_shows_the_accuracy_of_the_network(folder):
    """Training in plain PyTorch, then evaluation and attack by the runner in one process."""
    code = "import train_elsewhere as t; t.main('mlp', 'plain.safetensors', 60)"
    plain = run_python(["-c", code], folder)
    accuracy = float(plain.stdout.split()[-1])
    first = RUNS[0].replace("weights.safetensors", "plain.safetensors")
    words = [word for word in shorten(first) if not word.startswith("dataset.n_test")]
    printed = run_command([*words, "output_dir=plain"], folder)
    shown = re.search(r"│ accuracy +│ +([\d.]+)", printed)
    assert shown
    assert float(shown.group(1)) == pytest.approx(accuracy, abs=1e-9)
    assert accuracy > 0.3
    assert "robust_accuracy" in printed
