"""A run stopped and resumed on a GPU ends bit-identical to an uninterrupted run; resumed on the
other kind of device, it finishes and records that its streams changed."""

import pytest
import torch
from device.devices import draw_strictly, every_run

from runner.commands import resume
from runner.execution.execute import run
from runner.execution.signals import RunInterruptedError
from runner.record.facts import read

HERE = torch.cuda.is_available()
NONE = "no GPU was found (torch.cuda.is_available() is False): nothing was resumed there"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not HERE, reason=NONE),
    pytest.mark.filterwarnings("ignore"),
]
KEYS = ["steps=6", "record_every=1", "eval_every=2", "checkpoint_every=2"]
RUNS = [
    "gaussian-target_density-hmc",
    "gaussian-target_density-nuts",
    "linear_simulation-dgp-dsvi",
    "digits-mlp-adversarial_training",
    "linear_simulation-mlp-map",
    "nonlinear_growth-nonlinear_growth-bootstrap_filter",
    "images-vae-vi",
]


@pytest.mark.parametrize(("first", "second"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
@pytest.mark.parametrize("name", RUNS)
def test_gpu_run_resumes(make_job, monkeypatch, tmp_path, name, first, second):
    draw_strictly(monkeypatch)
    keys = [*every_run()[name].overrides, *KEYS, f"device={first}"]
    whole = run(make_job(*keys, f"output_dir={tmp_path / 'whole'}"))[1]
    job = make_job(*keys)

    def stop(step, _):
        if step == 4:
            raise RunInterruptedError(15, step)

    with pytest.raises(RunInterruptedError):
        run(job, stop)
    assert resume.main(["resume", str(job.folder), "--device", second]) == 0
    facts = read(job.folder)
    assert facts is not None
    assert facts["state"] == "done"
    if first == second:
        same = {k: v for k, v in facts["result"].items() if "seconds" not in k}
        assert same == {k: v for k, v in whole.items() if k in same}
        assert "moved" not in facts
    else:
        assert [line["device"] for line in facts["moved"]] == [second]
