"""``side_by_side=true``: replicates as a leading dimension of a run, with the record of sequential
replicates."""

import pytest
from support.runs.configured import read_records, repeatable

from components.metrics.names import without_costs
from runner import load
from runner.execution import replicate
from runner.execution.execute import run
from runner.execution.rng import Streams

AADM = [
    "+experiment=aadm_uci",
    "smoke=true",
    "steps=8",
    "eval_every=4",
    "record_every=2",
    "replicates=2",
    "dtype=float64",
    "keep_predictions=true",
    "validation=0.1",
]
TOGETHER = [*AADM, "side_by_side=true", "checkpoint_every=2"]


def test_joint_record_equals_a_sequential_one_even_if_stopped(
    make_job, prune, tmp_path, monkeypatch
):
    # figures take longest
    monkeypatch.setattr(replicate, "write_artefacts", lambda *_: None)
    looped, single = run(make_job(*AADM))
    executed, result = run(make_job(*TOGETHER, f"output_dir={tmp_path / 'whole'}"))
    facts = executed.record.facts
    assert facts["vectorised"] is True
    assert facts["data_digest"] == looped.record.facts["data_digest"]
    assert executed.job.signature != looped.job.signature
    assert result.keys() == single.keys()
    for name, values in repeatable(single).items():
        assert result[name] == pytest.approx(values, rel=1e-8), name
    assert single["rmse"][0] != single["rmse"][1]
    for r in range(2):
        kept = [
            (executed_run.job.folder / "predictions" / f"{r}.csv").read_text().splitlines()
            for executed_run in (looped, executed)
        ]
        assert [len(lines) for lines in kept] == [29, 29]  # a tenth of 277 rows, and their names
        assert [line.split(",")[:1] for line in kept[0]] == [
            line.split(",")[:1] for line in kept[1]
        ]

    job = make_job(*TOGETHER)
    prune(job)
    _, again = run(job)
    assert repeatable(again) == repeatable(result)
    loaded = load(job.folder)  # each replicate has its own posterior
    scored = loaded.problem.score(loaded.posterior, Streams(0))
    assert len(loaded.posterior) == len(scored["rmse"]) == 2
    assert read_records(job.folder) == read_records(executed.job.folder)


def test_several_alphas_have_separate_scores_and_predictions(make_job, monkeypatch):
    monkeypatch.setattr(replicate, "write_artefacts", lambda *_: None)
    executed, result = run(make_job(*TOGETHER, "inference.alphas=[0.25,1.0]"))
    words, names = zip(*(name.rsplit("/", 1) for name in without_costs(result)), strict=True)
    assert set(names) == {"0.25", "1"}
    assert names.count("1") == len(set(words))
    for name in set(names):
        assert (executed.job.folder / "variants" / name / "predictions" / "1.csv").exists()
    single = make_job(*AADM, "replicates=1", "side_by_side=true", "inference.alphas=[0.25,1.0]")
    assert single.is_vectorised, "one replicate has several posteriors"


def test_single_replicate_is_not_computed_jointly(make_job):
    single = make_job(*AADM, "replicates=1", "side_by_side=true")
    assert not single.is_vectorised
    assert single.method is single.inference
