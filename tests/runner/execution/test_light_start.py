"""Modules for scores and figures are imported late or not at all, and a finished run is reported without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from components.datasets import files
from runner.commands import app
from runner.compose.compose import compose
from runner.record.facts import read
from runner.terminal import printer

# One run of each family in a common process, in which imported modules stay imported.
FAMILIES = (
    "friend_or_foe wiener_velocity mog posteriordb four_statisticians multitask_toy bnn_uci "
    "digits_fgsm digits_security spam_acra spam_robust vae_digits"
)
HEAVY = (
    "mlflow matplotlib pandas scipy.stats sklearn xarray arviz_base arviz_stats IPython "
    "optuna joblib h5py jinja2 pooch"
)
FIRST_STEPS = """
import json, sys
from runner.commands import app
from runner.compose.compose import compose
from runner.execution import replicate

class LastRecordedLine(Exception): pass

output_dir, experiments, heavy = json.loads(sys.argv[1])
found = {}

def steps(*_):
    found[name] = [module for module in heavy if module in sys.modules]
    raise LastRecordedLine

replicate.steps = steps
for name in experiments:
    tracking = str(name == experiments[-1]).lower()  # only for the last: MLflow is imported where a run ends
    given = [f"+experiment={name}", "smoke=true", "offline=true", f"tracking={tracking}", f"output_dir={output_dir}"]
    try:
        print(app.attempt(compose(given)))
    except LastRecordedLine:
        pass
print("FOUND" + json.dumps(found))
"""

WHOLE_RUNS = """
import sys
from runner.commands import app
from runner.compose.compose import compose

given = ["figures=false", "tracking=false", "offline=true", f"output_dir={sys.argv[1]}"]
short = "+experiment=mog steps=20 eval_every=20 inference.burn_in=0 inference.thinning=1"
for words in (short, "+experiment=mog smoke=true", "+experiment=digits_fgsm smoke=true"):
    assert app.attempt(compose([*words.split(), *given])).code == 0
slow = "sympy sklearn scipy.stats scipy.signal scipy.optimize matplotlib xarray arviz_stats mlflow gpytorch numba requests"
heavy = [name for name in slow.split() if name in sys.modules]
assert not heavy, heavy
"""


@pytest.mark.slow  # 5 s
def test_scores_import_neither_scikit_learn_nor_slow_scipy(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WHOLE_RUNS, tmp_path], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # 7 s
def test_first_steps_import_nothing_for_scores_and_figures(tmp_path):
    given = json.dumps([str(tmp_path), FAMILIES.split(), HEAVY.split()])
    done = subprocess.run(
        [sys.executable, "-c", FIRST_STEPS, given], capture_output=True, text=True, timeout=200
    )
    assert "FOUND" in done.stdout, done.stdout + done.stderr
    modules = json.loads(done.stdout.partition("FOUND")[2])
    assert modules == {name: [] for name in FAMILIES.split()}


@pytest.fixture
def finished_run(tmp_path, monkeypatch):
    """A finished run in the current folder, on data from files or simulated data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNNER_DATA_DIR", raising=False)
    argv = ["+experiment=bnn_uci", "smoke=true", "offline=true", "tracking=false", "replicates=1"]
    assert app.attempt(compose(argv)).code == 0
    (folder,) = Path("outputs").glob("*/*")
    return argv, folder


def test_finished_run_is_reported_without_torch(finished_run, monkeypatch, capsys):
    argv, folder = finished_run
    with monkeypatch.context() as slowly:
        slowly.setattr(app, "find_finished_run", lambda _: None)
        slowly.setattr(printer.out, "_width", printer.WIDEST)
        capsys.readouterr()
        assert app.attempt(compose(argv)).code == 0
    output = capsys.readouterr().out
    stamp = (folder / "run.json").stat().st_mtime_ns
    assert "done already" in output
    # doctor reports a torch that cannot be imported, so it must not import it itself
    code = (
        "import sys, runner.system.doctor; from runner.commands import cli\n"
        "try: cli.main()\nfinally: assert 'torch' not in sys.modules"
    )
    quick = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=60
    )
    assert (quick.returncode, quick.stderr, quick.stdout) == (0, "", output)
    assert (folder / "run.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    "change",
    ["a file came", "downloads are allowed", "another config", "not done", "fresh", "old record"],
)
def test_changed_circumstances_are_checked_more_closely(finished_run, change, monkeypatch):
    argv, folder = finished_run
    facts = read(folder)
    if change == "a file came":
        path = Path("data") / files.catalogue()[0].path
        path.parent.mkdir(parents=True)
        path.write_text("")
    elif change == "downloads are allowed":
        argv = [*argv, "offline=false"]
    elif change == "another config":
        argv = [*argv, "seed=1"]
    elif change == "fresh":
        argv = [*argv, "fresh=true"]
    else:
        facts |= {"state": "interrupted"} if change == "not done" else {}
        facts.pop("data_state")
        (folder / "run.json").write_text(json.dumps(facts))
    assert app.find_finished_run(app.resolve(compose(argv))) is None


def test_old_record_is_recognised_from_its_second_check(finished_run):
    argv, folder = finished_run
    facts = read(folder)
    del facts["data_state"]
    (folder / "run.json").write_text(json.dumps(facts))
    assert app.find_finished_run(app.resolve(compose(argv))) is None
    assert app.attempt(compose(argv)).code == 0
    assert app.find_finished_run(app.resolve(compose(argv))) is not None
    assert read(folder)["git"] == facts["git"]  # the recorded commit stays
