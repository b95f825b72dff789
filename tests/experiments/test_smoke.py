"""Every experiment runs in smoke mode on built-in data, and resumes bit-identically after a stop
half-way."""

import math
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from support.runs.sketched import save_sketch

from components.metrics.names import base_name, score_names, without_costs
from runner.execution.execute import run
from runner.execution.signals import RunPrunedError
from runner.record.lines import read_lines

EXPERIMENTS = sorted(
    p.stem for p in (Path(__file__).parent.parent.parent / "conf/experiment").glob("*.yaml")
)
# One end-to-end run of each family is in the fast set, the others in the slow one; SG-MCMC on a
# density (test_sgld.py, test_replicates.py) runs elsewhere.
FAST = {
    "bnn_uci",  # SG-MCMC on minibatches
    "digits_fgsm",  # a security evaluation
    "friend_or_foe",  # a game in tables
    "friend_or_foe_grid",  # and a game with many moves
    "local_level",  # Gibbs over a series
    "multitask_toy",  # doubly stochastic variational inference
    "sarcos_irf",  # a scikit-learn estimator
    "sarcos_mdgp",  # L-BFGS on a collapsed bound
    "spam_acra",  # a defence that expects an attack on words
    "spam_robust",  # a defence that trains on attacks
    "stochastic_volatility",  # a particle filter
    "vae_digits",  # a model with latent variables
    "wiener_velocity",  # filters on contaminated observations
}
assert set(EXPERIMENTS) >= FAST, sorted(FAST - set(EXPERIMENTS))


@pytest.mark.parametrize(
    "experiment", [e if e in FAST else pytest.param(e, marks=pytest.mark.slow) for e in EXPERIMENTS]
)
def test_smoke_run_resumes_identically(experiment, make_job, tmp_path, monkeypatch):
    smoke = [f"+experiment={experiment}", "smoke=true", "record_every=1"]
    job = make_job(*smoke)
    _, result = run(job)
    assert result
    names = {base_name(name) for name in without_costs(result)}
    assert names <= score_names(job.dataset.problem_kind(), job.threat is not None)
    for name, values in result.items():
        assert all(isinstance(v, float | int) and not math.isinf(v) for v in values), name
    lines = read_lines(job.folder)
    assert lines[-1]["phase"] == "final"
    last = max(line["step"] for line in lines)
    if last < 2:
        return
    half = (last + 1) // 2
    monkeypatch.setattr(Figure, "savefig", save_sketch)  # figures have been drawn in the first run

    def stop(step, _):
        raise RunPrunedError(f"at {step}")

    often = [
        f"eval_every={half}",
        f"checkpoint_every={max(1, half - 1)}",
        f"output_dir={tmp_path / 'stopped'}",
    ]
    stopped = make_job(*smoke, *often)
    with pytest.raises(RunPrunedError):
        run(stopped, stop)
    _, resumed = run(stopped)
    assert drop_times(resumed) == drop_times(result)


def drop_times(scores):
    """Scores without times, which differ in each run."""
    timed = (
        "milliseconds/",
        "total_seconds/",
        "variance_seconds/",
        "cost/cpu_seconds",
        "cost/attack_cpu",
    )
    return {
        name: [str(v) for v in values]
        for name, values in scores.items()
        if not name.startswith(timed)
    }
