"""Pruning of a run: reports to the callback, final state, and resumption."""

from types import SimpleNamespace

import pytest
from support.runs.configured import read_records, repeatable

from runner.execution.execute import run
from runner.execution.signals import RunPrunedError
from runner.execution.watch import Watch
from runner.record.facts import read

# Two sequential replicates; robust accuracy is scored only at the end.
DIGITS = [
    "+experiment=digits_security",
    "smoke=true",
    "inference=map",
    "inference.optimizer=sgd",
    "inference.momentum=0.5",
    "steps=6",
    "eval_every=3",
    "replicates=2",
    "checkpoint_every=100",
    "objective=robust_accuracy",
]


def test_replicates_report_their_mean_one_after_another():
    reports = []
    watch = Watch(SimpleNamespace(), lambda step, scores: reports.append((step, scores)))
    watch.tell(3, 10, 0, {"a": 1.0}, {})
    watch.tell(10, 10, 0, {"a": 2.0, "robust": 0.5}, {})
    finished = {"0": {"a": 2.0, "robust": 0.5}}
    watch.tell(3, 10, 1, {"a": 1.0}, finished)
    watch.tell(10, 10, 1, {"a": 3.0, "robust": 0.25}, finished)
    assert reports == [
        (3, {"a": 1.0}),
        (10, {"a": 2.0, "robust": 0.5}),
        (13, {"a": 1.5}),
        (20, {"a": 2.5, "robust": 0.375}),
    ]


def prune(make_job, last):
    """A job pruned at a step, its record, and the scores reported until then."""
    reports = []

    def give_up(step, scores):
        reports.append((step, scores["robust_accuracy"]))
        if step == last:
            raise RunPrunedError(f"at {step}")

    job = make_job(*DIGITS)
    with pytest.raises(RunPrunedError):
        run(job, give_up)
    return job, read(job.folder), reports


def test_pruned_run_is_kept_and_resumes_to_the_same_result(make_job, tmp_path):
    whole, result = run(make_job(*DIGITS, f"output_dir={tmp_path / 'whole'}"))
    job, facts, reports = prune(make_job, 9)
    assert (facts["state"], facts["error"]) == ("pruned", "at 9")
    assert [step for step, _ in reports] == [3, 6, 9], "the second replicate counts on"
    assert reports[1][1] == facts["finished"]["0"]["robust_accuracy"]
    assert sorted((job.folder / "checkpoints").glob("*.json"))[-1].stem == "r0001-s000000003"
    _, again = run(job)
    assert repeatable(again) == repeatable(result), (
        "attacks on the way leave the random streams as they were"
    )
    assert read_records(job.folder) == read_records(whole.job.folder)


def test_run_pruned_after_a_replicate_keeps_it(make_job):
    _, facts, _ = prune(make_job, 6)
    assert facts["state"] == "pruned"
    assert facts["finished"].keys() == {"0"}
