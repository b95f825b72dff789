"""Scores against cost: counts of gradients, Pareto fronts, and the figures of a study."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from pydantic import ValidationError
from test_report import NOISE, STUDY, record, study  # noqa: F401

from runner.report.figures.costs import costs, pareto_front
from runner.report.report import write
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import CostSpec


def line(step, phase, replicate=0, **metrics):
    return {
        "step": step,
        "replicate": replicate,
        "time": float(step),
        "phase": phase,
        "metrics": metrics,
    }


def test_the_front_holds_what_no_other_dominates():
    points = [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0), (2.0, 3.5), (4.0, 1.0)]
    assert pareto_front(points, "lower") == [True, True, False, False, True]
    assert pareto_front(points, "higher") == [True, False, False, False, False]
    assert pareto_front(points, None) == [False] * 5


def with_costs(study, *figures):  # noqa: F811
    definition = StudyDefinition.model_validate(STUDY.model_dump() | {"figures": list(figures)})
    runs = [
        replace(run, config={"inference": {"name": name, "chains": 2}})
        for run, name in zip(study.runs, ["sgld", "sgld", "gibbs", "gibbs"] * 2, strict=True)
    ]
    return replace(study, study=definition, runs=runs)


def evaluated(study, experiment, *scores, **counts):  # noqa: F811
    """A record with evaluations; ``counts``: costs of a step."""
    folder = record(study, experiment, 1000, scores[-1] + NOISE)
    lines = [
        entry
        for step, score in enumerate(scores, start=1)
        for r in range(6)
        for entry in (
            line(10 * step, "train", r, loss=1.0),
            line(10 * step, "evaluation", r, nlpp=float(score + NOISE[r]))
            | {
                "metrics": {"nlpp": float(score + NOISE[r])}
                | {f"cost/{k}": 10 * step * n for k, n in counts.items()}
            },
        )
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def test_a_study_draws_its_scores_against_cost_by_one_key(study):  # noqa: F811
    frozen = with_costs(
        study,
        {"kind": "cost", "metric": "nlpp", "against": "steps"},
        {"kind": "cost", "metric": "nlpp", "against": "gradients"},
    )
    evaluated(study, "a", 3.0, 1.0, gradients=4)
    evaluated(study, "b", 2.0, 0.5)  # no count
    pictures = costs(frozen.study, frozen)
    assert list(pictures) == ["cost_nlpp_steps", "cost_nlpp_gradients"]
    by_steps, by_gradients = pictures.values()
    assert "mean and central 90 % of 6 replicates" in by_steps.caption
    assert by_gradients.caption.endswith("no count of gradient evaluations: sMDGP, tuned")
    means = [t for t in by_steps.chart["data"] if t["mode"] == "lines" and "customdata" in t]
    assert [t["x"] for t in means] == [[10, 20]] * 2
    assert [t["y"] for t in means] == [pytest.approx([3.0, 1.0]), pytest.approx([2.0, 0.5])]
    finals = {
        t["legendgroup"]: t["marker"]["symbol"]
        for t in by_steps.chart["data"]
        if t["mode"] == "markers"
    }
    assert finals["sMDGP, as published"].endswith("-open"), "as many steps and a worse score"
    assert not finals["sMDGP, tuned"].endswith("-open")
    assert all(math.isfinite(v) for t in means for v in t["y"])
    written, _ = write("small", frozen.study, frozen, study.output_dir / "out", forms=())
    assert "cost_nlpp_steps.png" in {path.name for path in written}


def test_figures_are_of_a_known_kind():
    assert CostSpec(kind="cost", metric="nlpp/task 1").name == "cost_nlpp_task_1_seconds"
    with pytest.raises(ValidationError, match="'curve', 'cost'"):
        StudyDefinition.model_validate(STUDY.model_dump() | {"figures": [{"kind": "coast"}]})


def test_each_cost_is_drawn_by_its_own_count(study):  # noqa: F811
    frozen = with_costs(
        study,
        {"kind": "cost", "metric": "nlpp", "against": "gradients"},
        {"kind": "cost", "metric": "nlpp", "against": "forwards"},
    )
    for experiment in ("a", "b"):
        evaluated(study, experiment, 3.0, 1.0, gradients=7, forwards=1)
    by_gradients, by_forwards = costs(frozen.study, frozen).values()
    means = [
        [t["x"] for t in one.chart["data"] if t["mode"] == "lines" and "customdata" in t]
        for one in (by_gradients, by_forwards)
    ]
    assert means == [[[70, 140]] * 2, [[10, 20]] * 2]
    assert "no count" not in by_gradients.caption
