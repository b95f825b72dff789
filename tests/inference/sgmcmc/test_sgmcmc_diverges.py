"""Samplers with momentum and a much too large step size: the run ends as diverged, and the message
names the key to lower.

(tests/runner covers sgld from the command line.)
"""

import json

import pytest

from components.errors import NumericalError
from runner.execution.execute import Run


@pytest.mark.parametrize(
    ("name", "keys"),
    [("sghmc", ["inference.friction=1e-7"]), ("sgd_momentum", ["inference.schedule=cyclical"])],
)
def test_diverged_state_is_reported(make_job, name, keys):
    job = make_job(
        "+experiment=mog", "smoke=true", f"inference={name}", "inference.step_size=1e6", *keys
    )
    run = Run(job)
    with pytest.raises(
        NumericalError, match=r"step \d+, replicate 1: .*; lower inference\.step_size"
    ):
        run.go()
    assert json.loads((run.record.folder / "run.json").read_text())["state"] == "diverged"
