"""A small version of Fig. 6.4: for noise with one long tail, no symmetric filter replaces the
asymmetric β-likelihood."""

import pytest
from scipy.stats import wilcoxon
from support.runs.configured import component, load
from support.series.small_sequences import run

from runner.execution.rng import Streams

RUNS = 60
TIMES = 300
PARTICLES = 500


def scores(problem, inference, **keys):
    rng = Streams(11)
    model = component("model", "asymmetric_wiener").build(problem, rng)
    actual = problem.score(
        run(component("inference", inference, particles=PARTICLES, **keys), model, problem, rng),
        rng,
    )
    return actual["nmse"], actual["coverage90"]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_asymmetric_beta_filter_has_least_error(scale):
    problem, rng = load("asymmetric_wiener", seed=20, replicates=RUNS, n_steps=TIMES)
    problem = problem.attack(component("attacker", "multiplicative_exponential", scale=scale), rng)
    nmse, covered = scores(problem, "beta_bootstrap_filter", beta=0.1)
    others = [scores(problem, "bootstrap_filter")]
    others += [scores(problem, "student_t_filter", df=1.0, scale=s) for s in (1.0, 10.0)]
    for worse, less in others:
        assert wilcoxon(nmse - worse, alternative="less").pvalue < 0.001
        assert wilcoxon(covered - less, alternative="greater").pvalue < 0.001
