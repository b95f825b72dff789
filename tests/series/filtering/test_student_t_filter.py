from dataclasses import replace

import pytest
import torch
from scipy import stats
from support.runs.configured import double, generator, normal
from support.series.small_sequences import moments_on_grid, one_observation, run_filter, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.sequences import Observation
from components.series.filtering.student_t_filter import log_student_t
from components.series.models.linear_gaussian_ssm import LinearGaussianModule


def draw_state(s):
    g = generator(0)
    x = normal(g, 2, 6, 3)
    return (
        LinearGaussianModule(s),
        x,
        Observation(1, 4 * normal(g, 2, 2)),
    )


@pytest.mark.parametrize("df", [1.0, 1.01, 7.0])
def test_densities_equal_scipy(df):
    """One t for each coordinate of y if Σ is diagonal, the multivariate t, and a t with a separate
    scale."""
    diagonal = torch.diag(double([4.0, 0.25]))
    for s in (replace(system(), Sigma=diagonal), system()):
        model, x, batch = draw_state(s)
        gaps = batch.y[:, None] - x @ s.H.T
        joint = stats.multivariate_t(shape=s.Sigma.numpy(), df=df).logpdf(gaps.numpy())
        got = log_student_t(model, batch, x, df, joint=True, scale=None)
        assert_close(got, torch.from_numpy(joint))
        log_p = stats.t(df, scale=20.0).logpdf(gaps.numpy()).sum(-1)
        assert_close(
            log_student_t(model, batch, x, df, joint=False, scale=20.0), torch.from_numpy(log_p)
        )
    model, x, batch = draw_state(replace(system(), Sigma=diagonal))
    apart = (
        stats.t(df, scale=[2.0, 0.5]).logpdf((batch.y[:, None] - x @ system().H.T).numpy()).sum(-1)
    )
    assert_close(
        log_student_t(model, batch, x, df, joint=False, scale=None), torch.from_numpy(apart)
    )


def test_posterior_of_one_step_matches_quadrature():
    got = run_filter("student_t_filter", one_observation(4.0, 1.5, 0.4), seed=4, particles=2000)
    law = torch.distributions.StudentT(1.0, scale=0.4**0.5)
    mean, variance = moments_on_grid(lambda x: law.log_prob(4.0 - 1.5 * x))
    assert z_score(got.mean[:, 0, 0], mean).abs() < 4
    assert z_score(got.variance[:, 0, 0], variance).abs() < 4.5
