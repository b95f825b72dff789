"""A run of any family, killed at any file operation and resumed, has the files of an uninterrupted
run."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from contract.partners import runs_of
from crashes import Crashes, contents, differences, draw_data
from matplotlib.figure import Figure

from components import registry
from components.errors import NumericalError
from runner.execution.execute import run
from runner.execution.storage import blocks

OFTEN = ["steps=6", "replicates=2", "record_every=1", "eval_every=3", "checkpoint_every=2"]
FAMILIES = {
    str(family): family
    for name in registry.names("inference")
    for family in runs_of("inference", name)
}
SAMPLED = [
    "friend_or_foe-q_table-q_learning-exponential_smoother",
    "wiener_velocity-linear_gaussian_ssm-kalman",
]  # in the fast set
STATES = 4  # for each of these


@pytest.fixture
def crashed_run(make_job, tmp_path, monkeypatch):
    """States of a run, the function that resumes it, and the expected result."""

    monkeypatch.setattr(Figure, "savefig", draw_data)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 200)  # bytes: the samples fill some blocks

    def begin(family: str):
        job = make_job(*FAMILIES[family].overrides, *OFTEN)
        crashes = Crashes(job.folder, tmp_path / "crashes")
        with crashes.take_copies():
            to_its_end(job)
        return job, crashes, contents(job.folder)

    return begin


def to_its_end(job) -> None:
    """A short run may end without finite scores, which must be recorded identically."""
    with suppress(NumericalError):
        run(job)


def go_on(job, crashes: Crashes, whole, points) -> list[str]:
    """Continue after each of the given crashes and list the differences."""
    wrong = []
    for copy, operation in points:
        crashes.put_back(copy)
        to_its_end(job)
        if differing := differences(contents(job.folder), whole):
            wrong.append(f"killed before {operation}: {', '.join(differing)}")
    return wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_run_survives_every_crash_point(crashed_run, family):
    job, crashes, whole = crashed_run(family)
    assert crashes.points > 30
    assert go_on(job, crashes, whole, crashes.states.values()) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", SAMPLED)
def test_run_survives_some_crash_points(crashed_run, family):
    job, crashes, whole = crashed_run(family)
    points = random.Random(family).sample(sorted(crashes.states.values()), STATES)
    assert go_on(job, crashes, whole, points) == []
