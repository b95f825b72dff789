"""Fixtures of the tests of the runner."""

from __future__ import annotations

import sys

import pytest
from matplotlib.figure import Figure
from support.runs.sketched import save_sketch

from runner.commands import cli
from runner.execution.execute import run
from runner.execution.signals import RunPrunedError


@pytest.fixture(autouse=True, scope="module")
def sketches(request):
    """Replace figures in records by sketches; tests/experiments and tests of reports draw figures."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "report":
            patch.setattr(Figure, "savefig", save_sketch)
        yield


@pytest.fixture
def command_line(monkeypatch, capfd):
    """Function that runs a command line in this process: exit code, output and errors."""

    def give(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["runner", *argv])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        printed = capfd.readouterr()
        return int(exit_.value.code or 0), printed.out, printed.err.strip()

    return give


@pytest.fixture
def prune():
    """Function that runs a job until a sweep prunes it at the first evaluation after a step."""

    def run_to(job, at: int = 0):
        def give_up(step, _):
            if step >= at:
                raise RunPrunedError(f"at {step}")

        with pytest.raises(RunPrunedError):
            run(job, give_up)

    return run_to
