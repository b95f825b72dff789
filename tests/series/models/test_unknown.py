"""Priors of unknown parameters compared with numerical integration, in the samplers'
coordinates."""

import pytest
import torch
from scipy import stats
from support.runs.configured import F64, generator
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.unknown import (
    HalfNormal,
    LogNormal,
    Normal,
    StretchedBeta,
    UnknownParameters,
)

LAWS = {
    "normal": (Normal(law="normal", mean=0.3, sd=0.7), stats.norm(0.3, 0.7)),
    "half_normal": (HalfNormal(law="half_normal", scale=0.6), stats.halfnorm(scale=0.6)),
    "log_normal": (
        LogNormal(law="log_normal", median=0.5, spread=0.4),
        stats.lognorm(0.4, scale=0.5),
    ),
    "beta": (StretchedBeta(law="beta", a=5.0, b=2.0), stats.beta(5.0, 2.0, loc=-1.0, scale=2.0)),
}


def unknowns(*laws):
    held = UnknownParameters()
    held.declare({f"p{j}": law for j, law in enumerate(laws)}, torch.empty(0, dtype=F64))
    return held


@pytest.mark.parametrize("name", LAWS)
def test_density_of_theta_includes_the_jacobian(name):
    law, reference = LAWS[name]
    held = unknowns(law)
    theta = torch.linspace(-20, 20, 40_001, dtype=F64).unsqueeze(1)
    density = held.log_prior(theta).exp()
    x = held.constrain(theta)[:, 0]
    step = float(theta[1] - theta[0])
    assert float(density.sum() * step) == pytest.approx(1, abs=1e-6)
    assert float((density * x).sum() * step) == pytest.approx(reference.mean(), abs=1e-5)
    inside = x[16_000:22_001]
    assert_close(law.log_density(inside), torch.from_numpy(reference.logpdf(inside)))


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_the_density(name):
    law, reference = LAWS[name]
    theta = unknowns(law).draw_prior(40_000, generator(1))
    x = unknowns(law).constrain(theta)[:, 0]
    assert abs(z_score(x, float(reference.mean()))) < 4
    assert abs(z_score((x - float(reference.mean())).square(), float(reference.var()))) < 4
    assert_close(law.inverse(x), theta[:, 0])


def test_parameters_are_independent_and_named():
    held = unknowns(LAWS["normal"][0], LAWS["beta"][0])
    theta = held.draw_prior(5, generator(0))
    assert theta.shape == (5, 2)
    each = sum(
        unknowns(LAWS[n][0]).log_prior(theta[:, j : j + 1])
        for j, n in enumerate(["normal", "beta"])
    )
    assert_close(held.log_prior(theta), each)
    assert list(held.by_name(theta)) == held.parameter_names == ["p0", "p1"]
