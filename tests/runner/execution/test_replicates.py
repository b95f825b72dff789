"""Runs with more or fewer replicates reuse finished replicates without changes."""

import pytest
from support.runs.configured import repeatable, repeatable_line

from runner.execution.execute import run
from runner.record.lines import read_lines

TOY = ["+experiment=multitask_toy", "smoke=true", "steps=6", "eval_every=3", "record_every=2"]
GAME = ["+experiment=friend_or_foe", "smoke=true"]  # its replicates are a dimension of the data


def _lines(folder):
    """Recorded lines without times."""
    return [repeatable_line(line) for line in read_lines(folder)]


@pytest.mark.parametrize(
    ("first", "then", "message"), [(1, 3, "1 of 3"), (3, 2, "2 of 2"), (2, 1, "its replicate")]
)
def test_replicates_finished_elsewhere_are_adopted(
    make_job, tmp_path, capsys, first, then, message
):
    alone, _ = run(make_job(*TOY, f"replicates={then}", f"output_dir={tmp_path / 'alone'}"))
    earlier, _ = run(make_job(*TOY, f"replicates={first}"))
    capsys.readouterr()
    executed, _ = run(make_job(*TOY, f"replicates={then}"))
    assert message in " ".join(capsys.readouterr().out.split())
    facts = executed.record.facts
    assert facts["state"] == "done"
    assert facts["taken_over"]["run"] == earlier.job.signature
    assert facts["taken_over"]["replicates"] == list(range(min(first, then)))
    assert repeatable(facts["result"]) == repeatable(alone.record.facts["result"])
    assert facts["checks"] == alone.record.facts["checks"]
    assert _lines(executed.job.folder) == _lines(alone.job.folder)
    for written in ("figures", "tables"):
        names = {p.name for p in (alone.job.folder / written).glob("*")}
        assert {p.name for p in (executed.job.folder / written).glob("*")} == names
    assert (executed.job.folder / "references.bib").exists()


@pytest.mark.slow  # 6 s
def test_replicates_of_other_configurations_are_not_adopted(make_job):
    run(make_job(*TOY, "replicates=1"))
    for other in (["seed=1"], ["steps=8"], ["fresh=true"]):
        executed, _ = run(make_job(*TOY, "replicates=2", *other))
        assert "taken_over" not in executed.record.facts


def test_replicates_with_a_shared_stream_are_not_adopted(make_job):
    run(make_job(*GAME, "replicates=2"))
    executed, _ = run(make_job(*GAME, "replicates=4"))
    assert "taken_over" not in executed.record.facts


def test_truncated_replicate_is_recomputed(make_job, tmp_path):
    alone, _ = run(make_job(*TOY, "replicates=3", f"output_dir={tmp_path / 'alone'}"))
    earlier, _ = run(make_job(*TOY, "replicates=2"))
    path = earlier.job.folder / "metrics.jsonl"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    executed, _ = run(make_job(*TOY, "replicates=3"))
    assert executed.record.facts["taken_over"]["replicates"] == [0]
    assert repeatable(executed.record.facts["result"]) == repeatable(alone.record.facts["result"])
    path.unlink()
    executed, _ = run(make_job(*TOY, "replicates=1"))
    assert executed.record.facts["taken_over"]["run"] != earlier.job.signature


@pytest.mark.parametrize(
    ("inference", "at_once"), [("sgld", True), ("sgld_r", True), ("hmc", False), ("mala", False)]
)
def test_density_replicates_are_computed_jointly(make_job, inference, at_once):
    assert (
        make_job("+experiment=mog", "steps=3000", f"inference={inference}").is_vectorised is at_once
    )
    assert make_job("+experiment=friend_or_foe").is_vectorised
    assert not make_job("+experiment=bnn_uci").is_vectorised
