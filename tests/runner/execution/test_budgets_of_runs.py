"""Costs in a record, and the budget that ends a run."""

import pytest
from support.runs.configured import read_records, repeatable

from components.metrics.names import without_costs
from components.problems.density import Density
from runner.errors import RunFailure
from runner.execution import replicate
from runner.execution.execute import run
from runner.record.facts import read
from runner.record.lines import read_lines

C = 4  # chains
MOG = [
    "dataset=funnel",
    "model=target_density",
    "inference=sgld",
    f"inference.chains={C}",
    "inference.burn_in=10",
    "inference.thinning=1",
    "steps=60",
    "eval_every=20",
    "checkpoint_every=10",
]


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setattr(replicate, "write_artefacts", lambda *_: None)
    monkeypatch.setattr(replicate, "write_files", lambda *_: [])
    monkeypatch.setattr(Density, "draw", lambda *_: {})


def costs_of(metrics):
    return {k: v for k, v in metrics.items() if k.startswith("cost/")}


def evaluations(folder):
    """(step, gradients) of each evaluation."""
    lines = [line for line in read_lines(folder) if line["phase"] != "train"]
    return [(line["step"], line["metrics"]["cost/gradients"]) for line in lines]


def test_every_evaluation_and_the_result_have_costs(make_job, capsys):
    executed, result = run(make_job(*MOG))
    assert evaluations(executed.job.folder) == [(t, C * (t + 1)) for t in (20, 40, 60)]
    assert result["cost/densities"] == result["cost/gradients"] == [C * 61]
    assert costs_of(result).keys() == {"cost/densities", "cost/gradients", "cost/cpu_seconds"}
    assert 0 < result["cost/cpu_seconds"][0] < 60
    assert "cost" not in capsys.readouterr().out
    trained = [line for line in read_lines(executed.job.folder) if line["phase"] == "train"]
    assert not any(costs_of(line["metrics"]) for line in trained)


def test_geometric_evaluations_are_spaced_by_cost(make_job):
    """Evaluations occur when the cost passes one of 24 points, from 1 % of the budget to its end."""
    budget = 4000
    words = ["eval_every=geometric", f"budget.gradients={budget}", "steps=10000"]
    executed, result = run(make_job(*MOG, *words))
    shares = [cost / budget for _, cost in evaluations(executed.job.folder)]
    points = [0.01 ** (1 - i / 23) for i in range(24)]
    step = C / budget
    assert len(shares) == 24
    assert all(0 <= share - point < step for share, point in zip(shares, points, strict=True))
    assert result["cost/gradients"] == [budget]


def test_evaluations_have_no_cost(make_job, tmp_path):
    """Each evaluation computes a kernel discrepancy with gradients of hundreds of draws."""
    _, seldom = run(make_job(*MOG, "eval_every=null", f"output_dir={tmp_path / 'seldom'}"))
    _, often = run(make_job(*MOG, "eval_every=11"))
    assert repeatable(seldom) == repeatable(often)


def test_replicates_cost_the_same_jointly_or_in_turn(make_job, tmp_path):
    filters = ["+experiment=wiener_velocity", "smoke=true", "replicates=3", "steps=5"]
    executed, together = run(make_job(*filters))
    assert executed.job.is_vectorised
    single = run(
        make_job(*filters[:2], "replicates=1", "steps=5", f"output_dir={tmp_path / 'one'}")
    )[1]
    assert together["cost/densities"] == 3 * single["cost/densities"]


@pytest.mark.parametrize("budget", [[], ["budget.gradients=190"]])
def test_resumed_run_counts_like_one_that_was_not_stopped(make_job, prune, tmp_path, budget):
    whole, result = run(make_job(*MOG, *budget, f"output_dir={tmp_path / 'whole'}"))
    prune(make_job(*MOG, *budget), at=20)
    again, resumed = run(make_job(*MOG, *budget))
    assert repeatable(resumed) == repeatable(result)
    assert read_records(again.job.folder) == read_records(whole.job.folder)
    ends = [read(executed_run.job.folder).get("budget_ends") for executed_run in (whole, again)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("limit", "step"), [(C * 31, 30), (C * 31 - 1, 30), (C * 31 + 1, 31), (1, 1), (10**6, 60)]
)
def test_training_ends_after_the_step_that_reaches_the_limit(make_job, limit, step, capsys):
    executed, result = run(make_job(*MOG, f"budget.gradients={limit}"))
    assert evaluations(executed.job.folder)[-1] == (step, C * (step + 1))
    facts = read(executed.job.folder)
    assert facts["state"] == "done"
    assert facts["checks"]["0"]
    if step == 60:
        assert "budget_ends" not in facts
        return
    assert facts["budget_ends"] == {"0": {"kind": "gradients", "limit": limit, "step": step}}
    output = capsys.readouterr().out
    assert (
        f"budget.gradients={limit} is exhausted: training ended after step {step} of 60" in output
    )
    alone = run(make_job(*MOG, f"steps={step}", "inference.burn_in=0"))[1] if step == 1 else result
    assert without_costs(alone).keys() >= without_costs(result).keys()


def test_budgeted_run_equals_a_run_of_that_many_steps(make_job, tmp_path):
    ended = run(make_job(*MOG, f"budget.gradients={C * 31}"))[1]
    shorter = run(make_job(*MOG, "steps=30", f"output_dir={tmp_path / 'shorter'}"))[1]
    assert repeatable(ended) == repeatable(shorter)


def test_run_killed_before_its_last_evaluation_adds_no_step(make_job, monkeypatch):
    job = make_job(*MOG, f"budget.gradients={C * 34}")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(replicate, "plain", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(job)
    run(make_job(*MOG, f"budget.gradients={C * 34}"))
    assert evaluations(job.folder)[-1] == (33, C * 34)
    assert read(job.folder)["budget_ends"]["0"]["step"] == 33


def test_every_replicate_has_its_own_budget(make_job):
    method = ["inference=nuts", "inference.chains=2", "inference.warmup=5", "inference.thinning=1"]
    keys = [word for word in MOG if not word.startswith("inference")]
    executed, result = run(make_job(*keys, *method, "replicates=2", "budget.gradients=400"))
    ends = read(executed.job.folder)["budget_ends"]
    assert [ends[r]["step"] < 60 for r in ("0", "1")] == [True, True]
    assert all(n >= 400 for n in result["cost/gradients"])


def test_start_beyond_the_budget_ends_the_run(make_job):
    short = ["inference=importance_sampling", "inference.proposal=gaussian", "steps=60"]
    job = make_job(*MOG[:2], "dataset.dim=20", *short, "budget.gradients=100")
    with pytest.raises(RunFailure, match=r"budget .* before the first step; raise it"):
        run(job)
    facts = read(job.folder)
    assert facts["state"] == "failed"
    assert facts["budget_ends"] == {"0": {"kind": "gradients", "limit": 100, "step": 0}}


def test_limit_has_one_form_in_the_signature(make_job):
    limited = make_job(*MOG, "budget.gradients=1e3")
    assert limited.signature != make_job(*MOG).signature
    assert limited.budget == {"gradients": 1000}
    assert limited.signature == make_job(*MOG, "budget={gradients: 1000}").signature
