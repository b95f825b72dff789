"""CPU seconds and memory measured by a run."""

from __future__ import annotations

import pytest

from runner.record import usage
from runner.record.usage import UsageMeter, cpu_now, peak_mib


def test_phases_add_up_and_inner_phases_count_separately(monkeypatch):
    # another test may have run a command in this process
    monkeypatch.setattr(usage, "_started_for_one_run", False)

    def work(seconds: float) -> None:
        ends = cpu_now() + seconds
        while cpu_now() < ends:
            pass

    meter = UsageMeter(before={"training": 10.0, "cpu_seconds": 12.0, "passes": 1})
    with meter.phase("training"):
        work(0.05)
        with meter.phase("evaluations"):
            work(0.1)
    meter.passes += 1
    facts = meter.facts()
    seconds = [facts[name] for name in ("training", "evaluations", "cpu_seconds")]
    assert seconds == pytest.approx([10.05, 0.1, 12.15], abs=0.05)
    assert facts["passes"] == 2
    assert 10.0 < facts["peak_mib"] == pytest.approx(peak_mib(), rel=0.2)
