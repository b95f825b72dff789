"""A signal during the writing of a run is handled afterwards and stops the caller."""

import os
import signal

import pytest
from crashes import SMALL_RUN, draw_data
from matplotlib.figure import Figure

from runner.execution import replicate
from runner.execution.execute import run
from runner.execution.signals import RunInterruptedError
from runner.record.facts import read
from runner.record.record import Record

RUN = [*SMALL_RUN, "steps=4"]


@pytest.fixture
def job(make_job, monkeypatch):
    monkeypatch.setattr(Figure, "savefig", draw_data)
    return lambda *more: make_job(*RUN, *more)


def signal_after(real, when=lambda *_, **__: True):
    def call(*arguments, **keys):
        if when(*arguments, **keys):
            os.kill(os.getpid(), signal.SIGTERM)
        return real(*arguments, **keys)

    return call


def test_run_resumes_after_a_signal_while_drawing(job, monkeypatch):
    """With a remaining replicate the run resumes there; the written replicate is finished."""
    two = job("replicates=2")
    with monkeypatch.context() as patch:
        patch.setattr(replicate, "write_artefacts", signal_after(replicate.write_artefacts))
        with pytest.raises(RunInterruptedError, match="the same command resumes") as stopped:
            run(two)
    assert stopped.value.code == 128 + signal.SIGTERM
    facts = read(two.folder)
    assert facts["state"] == "interrupted"
    assert set(facts["finished"]) == {"0"}
    assert run(two)[1]["rmse"][0] == facts["finished"]["0"]["rmse"]


def test_record_is_complete_after_a_signal_at_the_end(job, monkeypatch):
    """The record is complete, but the exit code reports a signal."""
    first_job = job()
    with monkeypatch.context() as patch:
        patch.setattr(
            Record,
            "save",
            signal_after(Record.save, lambda *_, **facts: facts.get("state") == "done"),
        )
        with pytest.raises(RunInterruptedError, match="its record is complete") as stopped:
            run(first_job)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert read(first_job.folder)["state"] == "done"
    assert run(first_job)[0].was_done
