import math

import pytest
import torch
from scipy import stats
from support.runs.configured import component, double, load
from support.targets.known_targets import z_score

from components.contracts.sequences import Clean
from components.errors import ConfigMismatchError


def attack(seed=0, replicates=40, n_steps=400, **keys):
    problem, rng = load("wiener_velocity", seed, replicates=replicates, n_steps=n_steps)
    return problem, problem.attack(component("attacker", "student_t_outliers", **keys), rng)


@pytest.mark.parametrize("df", [1.0, 3.5])
@pytest.mark.parametrize("mode", ["replace", "add"])
def test_noise_has_student_t_quantiles(mode, df):
    clean, hit = attack(probability=0.25, df=df, scale=0.5, mode=mode)
    struck = (hit.observations != clean.observations).all(-1)
    assert abs(z_score(struck.flatten().double(), 0.25)) < 4
    base = hit.means.expand_as(hit.observations) if mode == "replace" else clean.observations
    tau = ((hit.observations - base) / 0.5)[struck]
    for p in (0.02, 0.2, 0.5, 0.9, 0.99):
        quantile = stats.t.ppf(p, df)
        assert abs(z_score((tau[:, 0] <= quantile).double(), p)) < 4
        assert abs(z_score((tau[:, 1] <= quantile).double(), p)) < 4
    assert abs(z_score((tau[:, 0] * tau[:, 1] > 0).double(), 0.5)) < 4  # a draw for each coordinate


def test_one_draw_can_be_shared():
    _, hit = attack(probability=0.3, shared=True, replicates=2)
    noise = (hit.observations - hit.means)[hit.is_corrupted]
    assert (noise[:, 0] - noise[:, 1]).abs().max() < 1e-9


def test_density_is_the_printed_mixture_and_integrates_to_one():
    attacker = component("attacker", "student_t_outliers", probability=0.3, df=3.0, scale=2.0)
    grid = torch.linspace(-150, 150, 3001).double()
    eps = torch.cartesian_prod(grid, grid)
    Sigma = torch.tensor([[1.0, 0.3], [0.3, 2.0]]).double()
    density = attacker.log_noise_density(eps, Sigma)
    assert float(density.exp().sum() * 0.01) == pytest.approx(1, abs=1e-4)
    point = double([1.0, -0.5])
    gaussian = stats.multivariate_normal.pdf(point, cov=Sigma)
    exact = math.log(0.7 * gaussian + 0.3 * stats.t.pdf(point, 3, scale=2).prod())
    assert float(attacker.log_noise_density(point, Sigma)) == pytest.approx(exact)


@pytest.mark.parametrize(
    ("keys", "mend"), [({"mode": "add"}, "mode=replace"), ({"shared": True}, "shared=false")]
)
def test_law_without_a_density_is_refused(keys, mend):
    attacker = component("attacker", "student_t_outliers", **keys)
    with pytest.raises(ConfigMismatchError, match=f"set attacker.{mend}"):
        attacker.log_noise_density(torch.zeros(1, 2), torch.eye(2))


def test_noise_of_unknown_law_cannot_be_replaced():
    _, rng = load("wiener_velocity", n_steps=3)
    with pytest.raises(ConfigMismatchError, match=r"set attacker\.mode=add"):
        component("attacker", "student_t_outliers").corrupt(Clean(torch.zeros(1, 3, 2)), rng)
