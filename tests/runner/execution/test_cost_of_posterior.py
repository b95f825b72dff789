"""Costs of a run's final posterior count; costs of earlier evaluations do not accumulate."""

import pytest

from runner.execution.execute import run
from runner.record.lines import read_lines

DENSITY = [
    "dataset=funnel",
    "model=target_density",
    "inference=bbvi",
    "steps=8",
    "inference.n_samples=3",
    "figures=false",
]


@pytest.mark.parametrize("draws", [60, 90])
def test_bound_of_the_draws_is_part_of_the_cost(make_job, draws):
    """init evaluates the start of q once; a step takes 3 densities, and the bound 2 × draws."""
    done, result = run(make_job(*DENSITY, f"inference.draws={draws}", "eval_every=2"))
    begun = result["cost/densities"][0] - 3 * 8 - 2 * draws
    assert begun == 1
    lines = {
        line["step"]: line["metrics"]
        for line in read_lines(done.job.folder)
        if line["phase"] != "train"
    }
    costs = [lines[step]["cost/densities"] for step in (2, 4, 6, 8)]
    assert costs == [begun + 3 * step + 2 * draws for step in (2, 4, 6, 8)]


def test_refined_draws_count_their_transitions(make_job):
    """Each draw of q takes T steps of Langevin dynamics with one gradient each."""
    words = ["dataset=funnel", "model=target_density", "inference=vis", "steps=2", "figures=false"]
    few, many = (
        run(make_job(*words, "inference.draws=50", f"inference.infer_steps={T}"))[1][
            "cost/gradients"
        ][0]
        for T in (1, 3)
    )
    assert many - few == 2 * (2 * 50)  # two more steps of two chains of 50 draws
