"""Report of a sweep by Optuna: importance, best trials, savings by pruning, and its link."""

from __future__ import annotations

import json

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from runner.errors import ConfigError
from runner.sweep import search_link, table
from runner.sweep.best import show_best
from runner.sweep.optuna_report import importances, write_report
from runner.sweep.outcomes import SWEEP_VARIABLE, JobOutcome, note
from runner.sweep.trials import completed_trials, describe_savings, pareto_front

WIDE = FloatDistribution(0, 1)


def swept(
    values, directions=("minimize",), states=(), names=("loss",), storage=None
) -> optuna.Study:
    """One trial for each (x, y) of a small grid; ``states`` lists those pruned at step 10 of
    100."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(study_name="s", directions=list(directions), storage=storage)
    study.set_user_attr("objectives", list(names))
    grid = [(x / 4, y / 2) for x in range(5) for y in range(3)]
    for k, (x, y) in enumerate(grid):
        pruned = k in states
        study.add_trial(
            create_trial(
                state=TrialState.PRUNED if pruned else TrialState.COMPLETE,
                values=None if pruned else values(x, y),
                params={"x": x, "y": y},
                distributions={"x": WIDE, "y": WIDE},
                intermediate_values={10: 1.0} if states else {},
                user_attrs={"steps": 100, "run": f"mine/{k}"}
                | ({"pruned at": 10} if pruned else {}),
            )
        )
    return study


def test_most_important_key_is_first():
    shares = importances(swept(lambda x, y: [10 * x + 0.01 * y]))
    assert list(shares["loss"]) == ["x", "y"]
    assert shares["loss"]["x"] > 0.9
    assert importances(swept(lambda x, y: [1.0])) == {}, "all alike"


def test_report_needs_no_network_and_has_every_figure(tmp_path, capsys):
    study = swept(lambda x, y: [(x - 0.5) ** 2 + y], states=(0, 1))
    assert show_best(study, tmp_path) == 0.0
    html = (tmp_path / "report.html").read_text()
    for title in (
        "History",
        "Importance of the keys",
        "Parallel coordinates",
        "Contour",
        "Intermediate evaluations",
    ):
        assert f"<h2>{title}</h2>" in html
    assert html.count("plotly.js v") == 1, "the library is in it once"
    assert "<script src=" not in html
    assert "pruned at step 10" in html
    assert describe_savings(study) == "1,320 steps of 1,500: pruning saved 12%"
    assert "steps    1,320 steps of 1,500" in capsys.readouterr().out


def test_pareto_front_is_first_for_several_objectives(tmp_path):
    study = swept(lambda x, y: [x, 1 - x + y], ("minimize", "minimize"), names=("a", "b"))
    front = pareto_front(study)
    assert {study.trials[k].params["y"] for k in front} == {0.0}, "y only costs"
    assert len(front) == 5
    assert {t.number for t in completed_trials(study)[:5]} == set(front)
    write_report(study, tmp_path)
    assert "<h2>Pareto front</h2>" in (tmp_path / "report.html").read_text()


def test_finished_sweep_is_listed_with_its_best_marked(tmp_path, monkeypatch, capsys):
    sweep = tmp_path / "multirun" / "now"
    folder = tmp_path / "sweeps" / "s"
    monkeypatch.setenv(SWEEP_VARIABLE, str(sweep))
    study = swept(lambda x, y: [x + y])
    for number in (0, 1):
        params = study.trials[number].params
        note(JobOutcome(number, [f"x={params['x']!r}", f"y={params['y']!r}"], 0, "", None))
    show_best(study, folder)
    search_link.link_search(folder)
    capsys.readouterr()
    (tmp_path / "elsewhere").mkdir()
    for name in ("multirun", "sweeps"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    sweep = tmp_path / "elsewhere" / "multirun" / "now"
    assert table.main(["sweep", str(sweep)]) == 0
    printed = capsys.readouterr().out
    assert "elsewhere/sweeps/s/best.yaml, report.html" in printed
    assert "★ done" in printed
    assert (sweep / "sweep.csv").read_text().count("True") == 1
    assert 'href="../../sweeps/s/report.html"' in (sweep / "sweep.html").read_text()
    (sweep / search_link.LINK).write_text(json.dumps([]))
    with pytest.raises(
        ConfigError, match=r"optuna.json: invalid link to a search; remove the file"
    ):
        table.show(sweep)
