"""``run`` and ``load``: a silent run equal to the command line's, and its recorded results."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from support.runs.configured import repeatable

from components.errors import NumericalError
from components.problems.supervised import Supervised
from runner import CONF, ConfigError, RunFailure, load, run
from runner.commands import app
from runner.compose.compose import compose
from runner.execution import duties, execute
from runner.record.facts import read
from runner.tracking import handover

KEYS = {"smoke": True, "tracking": False, "offline": True}
WORDS = ["+experiment=cavi_probit", "smoke=true", "tracking=false", "offline=true"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNNER_DATA_DIR", raising=False)
    monkeypatch.setattr(Supervised, "draw", lambda *_: {})  # figures take most of the time
    return tmp_path


def run_python(code, **keys):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **keys)


def test_import_costs_nothing():
    code = "import runner, sys, json; print(json.dumps([m for m in ('torch', 'pandas', 'hydra', 'yaml') if m in sys.modules]))"
    done = run_python(code + "; runner.run")
    assert json.loads(done.stdout) == [], done.stderr
    assert done.returncode == 0
    with pytest.raises(ImportError, match="nothing_such"):
        exec("from runner import nothing_such")


def test_python_and_command_line_share_finished_runs(capsys):
    first = run("cavi_probit", seed=4, **KEYS)
    assert not first.was_done
    assert first.state == "done"
    assert read(first.record)["command"] == ["+experiment=cavi_probit", "seed=4", *WORDS[1:]]
    stamp = (first.record / "run.json").stat().st_mtime_ns
    assert capsys.readouterr() == ("", "")
    assert app.attempt(compose([*WORDS, "seed=4"])).folder == first.record
    assert "done already" in capsys.readouterr().out

    assert app.attempt(compose([*WORDS, "seed=5", "model.prior_scale=0.5"])).code == 0
    second = run("cavi_probit", "seed=5", model={"prior_scale": 0.5}, **KEYS)
    assert second.was_done
    assert second.record != first.record
    again = run("cavi_probit", seed=4, fresh=True, **KEYS)
    assert repeatable(again.scores) == repeatable(first.scores)
    assert (first.record / "run.json").stat().st_mtime_ns != stamp  # it was computed again


def test_learnt_posterior_is_the_scored_one():
    result = load(run("cavi_probit", replicates=2, **KEYS).id[:6])
    again = result.problem.score(result.posterior, result._restore.rng)
    assert result.replicate == 1
    recorded = {name: score.values[1] for name, score in result.scores.items() if name in again}
    assert recorded == {name: float(value) for name, value in again.items()}
    x = result.problem.test.x
    assert torch.equal(result.predict(x).probs, result.predict(x.numpy()).probs)
    assert result.scores["nlpp"].mean == pytest.approx(sum(result.scores["nlpp"].values) / 2)
    lines = result.metrics
    assert list(lines.columns) == ["replicate", "step", "phase", "metric", "value"]
    final = lines[(lines.phase == "final") & (lines.metric == "nlpp")]
    assert tuple(final.value) == result.scores["nlpp"].values
    assert list(final.replicate) == [0, 1]
    assert result.config["model"]["name"] == "probit_regression"
    with pytest.raises(ConfigError, match=r"predict: .* \(2, 1\), .* rows of 3"):
        result.predict(np.zeros((2, 1)))


def test_predictions_name_their_posterior_if_several_were_learnt():
    asked = {"smoke": True, "steps": 4, "replicates": 2, "side_by_side": True, "tracking": False}
    both = run("aadm_uci", inference={"alphas": [0.25, 1.0], "warmup": 0, "n_predict": 5}, **asked)
    single = run("aadm_uci", inference={"alpha": 1.0, "warmup": 0, "n_predict": 5}, **asked)
    x = single.problem.splits[1].test.x
    theirs = both.predict(x, replicate=1, variant="1")
    torch.testing.assert_close(
        theirs.mean, single.predict(x, replicate=1).mean, rtol=1e-4, atol=1e-5
    )
    assert not torch.allclose(
        theirs.mean, both.predict(x, replicate=0, variant="1").mean, rtol=1e-4
    )
    alone = run("cavi_probit", **KEYS)
    several = "were trained side by side; choose one"
    for result, asked, message in (
        (both, {}, f"replicate=None: several replicates {several} from 0 to 1"),
        (both, {"replicate": 2}, "replicate=2: several"),
        (both, {"replicate": 0}, f"variant=None: several variants {several} of 0.25, 1"),
        (single, {"replicate": 0, "variant": "1"}, "variant=1: the run has a single posterior"),
        (alone, {"replicate": 3}, "replicate=3: only the last replicate is stored; use 0"),
    ):
        inputs = alone.problem.test.x if result is alone else x
        with pytest.raises(ConfigError, match=message):
            result.predict(inputs, **asked)


def test_process_state_is_unchanged(monkeypatch):
    torch.set_num_threads(2)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    arguments = []
    monkeypatch.setattr(
        duties,
        "record_information",
        lambda _: lambda step: arguments.append((signal.getsignal(signal.SIGINT), os.getcwd())),
    )
    process_state = os.getcwd(), list(sys.argv), dict(os.environ)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        run("cavi_probit", steps=2, **KEYS)
        assert GlobalHydra.instance().is_initialized()
        assert hydra_compose("config").seed == 0
    assert arguments == [(handlers[0], process_state[0])] * 2
    assert (os.getcwd(), sys.argv, dict(os.environ)) == process_state
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def test_hydra_and_omegaconf_state_is_unchanged():
    code = """
import os, tempfile
from omegaconf import OmegaConf
from runner import run, RunnerError
for keys in ({"seed": -1}, {"sead": 1}):
    try:
        run("cavi_probit", **keys)
    except RunnerError as error:
        print(error)
print(OmegaConf.create({"home": "${oc.env:HOME}"}).home)
"""
    environment = os.environ | {"HOME": "/somewhere"}
    done = run_python(code, env=environment)
    printed = [
        "seed=-1: out of range; must be ≥ 0",
        "sead: unknown key, did you mean seed?",
        "/somewhere",
    ]
    assert done.stdout.splitlines() == printed, done.stderr


@pytest.mark.parametrize(
    ("words", "keys", "message"),
    [
        (
            "cavi_probitt",
            {},
            "experiment=cavi_probitt: no such experiment, did you mean cavi_probit?",
        ),
        (
            "cavi_probit",
            {"inference": {"drawz": 1}},
            "inference.drawz: unknown key, did you mean inference.draws?",
        ),
        (
            "cavi_probit seed=1,2",
            {},
            "seed=1,2: several values need a sweep; call run once for each",
        ),
        ("cavi_probit -m", {}, "-m: supported only on the command line; call run once for each"),
        (
            "cavi_probit --cfg",
            {},
            "--cfg: not supported by run; the only supported flag is --config-dir=…",
        ),
        ("cavi_probit", {"model": object()}, "model: object is not a valid type in a config"),
        ("seed=3", {}, "run: 'seed=3' is not the name of an experiment; give a name"),
        ("cavi_probit", {"inference": "kalman"}, "inference=kalman"),
        ("", {"dataset": "binary_simulation"}, "model, inference: missing"),
    ],
)
def test_user_error_is_one_line(words, keys, message, capsys, elsewhere):
    with pytest.raises(ConfigError) as caught:
        run(*words.split(), **keys)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) <= 3
    assert capsys.readouterr() == ("", "")
    assert not list(elsewhere.iterdir())


def test_interrupted_call_raises_and_resumes(monkeypatch):
    with monkeypatch.context() as stopped:

        def interrupt(course):
            def at_the_fifth(step):
                if step.number == 5:
                    raise KeyboardInterrupt

            return at_the_fifth

        stopped.setattr(duties, "stop_when_asked", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run("cavi_probit", checkpoint_every=2, **KEYS)
    (folder,) = Path("outputs/cavi_probit").iterdir()
    assert load(folder).state == "interrupted"
    went_on = run("cavi_probit", checkpoint_every=2, **KEYS)
    assert went_on.state == "done"
    assert not went_on.was_done
    whole = run("cavi_probit", fresh=True, **KEYS)
    assert repeatable(went_on.scores) == repeatable(whole.scores)


def test_diverged_run_raises_an_error(monkeypatch):
    def trouble(*_):
        raise NumericalError("elbo is nan", "lower inference.lr (now 1)")

    monkeypatch.setattr(execute, "check_scores", trouble)
    with pytest.raises(
        RunFailure,
        match=r"^diverged: elbo is nan; lower inference.lr \(now 1\); .* checkpoint is kept$",
    ):
        run("cavi_probit", **KEYS)


def test_mlflow_is_updated_like_by_the_command_line(monkeypatch):
    asked = []
    monkeypatch.setattr(handover, "start_pusher", asked.append)
    monkeypatch.setattr(handover, "TIMEOUT_SECONDS", 0.0)
    run("cavi_probit", **(KEYS | {"tracking": True}))
    first = len(asked)
    assert first
    assert run("cavi_probit", **(KEYS | {"tracking": True})).was_done
    assert len(asked) > first  # not yet available
