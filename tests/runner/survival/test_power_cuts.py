"""After a power cut a run of any family continues to the same record, or a line names the damaged
file."""

from __future__ import annotations

import random
import shutil
import warnings

import pytest
from crashes import contents, differences, draw_data
from matplotlib.figure import Figure
from power_cuts import PowerCuts
from test_crash_points import FAMILIES, OFTEN, to_its_end

from runner.errors import RunnerWarning
from runner.execution.storage import blocks

ALL = sorted(random.Random(0).sample(sorted(FAMILIES), 30))
FAST = ["friend_or_foe-q_table-q_learning-exponential_smoother"]


def compare_after_cuts(make_job, tmp_path, monkeypatch, capsys, family, n_states) -> list[str]:
    monkeypatch.setattr(Figure, "savefig", draw_data)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 200)
    job = make_job(*FAMILIES[family].overrides, *OFTEN)
    cuts = PowerCuts(job.folder, tmp_path / "cuts")
    with cuts.watch():
        to_its_end(job)
    whole = contents(job.folder)
    assert len(cuts.states) > 3
    wrong = []
    states = cuts.states if n_states is None else cuts.states[-n_states:]
    for state in states:
        shutil.rmtree(job.folder)
        shutil.copytree(state, job.folder)
        capsys.readouterr()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            to_its_end(job)
        is_named = any(issubclass(each.category, RunnerWarning) for each in caught)
        is_named |= "Damaged record" in capsys.readouterr().out
        if not is_named and (names := differences(contents(job.folder), whole)):
            wrong.append(f"{state.name}: {', '.join(names)}")
    return wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ALL)
def test_record_is_equal_or_damage_is_named(make_job, tmp_path, monkeypatch, capsys, family):
    assert compare_after_cuts(make_job, tmp_path, monkeypatch, capsys, family, None) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAST)
def test_record_is_equal_at_the_last_cuts(make_job, tmp_path, monkeypatch, capsys, family):
    assert compare_after_cuts(make_job, tmp_path, monkeypatch, capsys, family, 4) == []
