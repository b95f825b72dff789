"""Table 2.7 of Gallego (2021): the published numbers from configuration, and the behaviour of the
published model."""

import pytest
from support.runs.configured import made_job, make_setting
from support.runs.real_files import FOLDER, find_or_skip
from support.small.small_problems import advance

from components.series.forecast_data.co2 import CO2
from runner.execution.rng import Streams


def scores(folder, steps, *overrides):
    find_or_skip(CO2.path)
    job = made_job(folder, f"data_dir={FOLDER}", *overrides)
    rng = Streams(0)
    problem = job.dataset.load(rng, make_setting(FOLDER))
    state = job.inference.init(job.model.build(problem, rng), problem, rng)
    state, _ = advance(job.inference, state, problem, rng, 0, steps)
    return problem.score(job.inference.posterior(state), rng)


@pytest.mark.parametrize(
    ("steps", "overrides", "printed"),
    [
        (10, ["inference.refine_steps=0", "inference.infer_steps=0"], (0.270, 2.537, 15.247)),
        (4, [], (0.239, 2.401, 13.461)),
    ],
)
def test_scores_match_published_table(tmp_path, steps, overrides, printed):
    metrics = scores(tmp_path, steps, "+experiment=co2_dlm_as_published", *overrides)
    ours = [metrics[name] for name in ("mae", "predictive_entropy", "interval_score_2sd")]
    assert ours == pytest.approx(printed, rel=0.01)


@pytest.mark.slow
def test_maximum_likelihood_reaches_published_scores(tmp_path):
    metrics = scores(tmp_path, 1000, "+experiment=co2_dlm")
    assert metrics["mae"] <= 0.02
    assert metrics["predictive_entropy"] <= -2
    assert metrics["interval_score"] <= 0.15
    assert metrics["interval_score_2sd"] <= 0.15
    assert metrics["coverage95"] >= 0.9
