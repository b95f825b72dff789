"""A run stopped on one device and resumed on another matches an uninterrupted run: the stand-in's
generators have the states of the CPU's."""

import pytest
from device.devices import draw_strictly, every_run, list_differences

from runner.commands import resume
from runner.execution.execute import run
from runner.execution.signals import RunInterruptedError
from runner.record.facts import read

KEYS = ["steps=6", "record_every=1", "eval_every=2", "checkpoint_every=2"]
RUNS = {
    name: case
    for name, case in every_run().items()
    if ("inference", name.split("-")[2]) in case.choice and len(name.split("-")) == 3
}
FAST = {
    "linear_simulation-mlp-map",
    "gaussian-target_density-nuts",
    "linear_simulation-dgp-dsvi",
    "wiener_velocity-lgssm-kalman",
    "digits-mlp-adversarial_training",
}
ONE_EACH = {case.choice: name for name, case in sorted(RUNS.items(), reverse=True)}
# One for each inference method.
CASES = [
    pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow])
    for name in sorted({*ONE_EACH.values(), *(FAST & set(RUNS))})
]
CLOSE = 1e-6


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", ["cpu", "standin"])
@pytest.mark.parametrize("name", CASES)
def test_run_resumes_on_another_device(device, make_job, monkeypatch, name, first):
    draw_strictly(monkeypatch)
    RUNS[name].skip_without_packages()
    keys = [*RUNS[name].overrides, *KEYS]

    def stop(step, _):
        if step == 4:
            raise RunInterruptedError(15, step)

    try:
        whole = run(make_job(*keys, "device=cpu", f"output_dir={make_job.args[0] / 'whole'}"))[1]
    except Exception as error:
        pytest.skip(f"not on the CPU either: {error}")
    job = make_job(*keys, f"device={first}")
    try:
        run(job, stop)
    except RunInterruptedError:
        pass
    else:
        pytest.skip("it ends before it can be stopped")
    second = device if first == "cpu" else "cpu"
    assert resume.main(["resume", str(job.folder), "--device", second, "--trust"]) == 0
    facts = read(job.folder)
    assert facts is not None
    assert facts["state"] == "done"
    assert list_differences(facts["result"], whole, lambda _: CLOSE) == {}
