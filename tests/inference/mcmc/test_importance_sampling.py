import math

import pytest
import torch
from scipy import stats
from support.runs.configured import component, double, generator, normal
from support.small import small_problems
from support.targets.exact_moments import regression_moments
from support.targets.exact_targets import TwoModes
from support.targets.known_targets import GammaTarget, correlated_gaussian, sample_target, white
from torch.testing import assert_close

from components.errors import ConfigMismatchError, NumericalError
from components.inference.mcmc.laplace import laplace
from components.metrics.importance_weights import pareto_k, weight_ess
from components.posteriors.draws import Draws
from runner.execution.rng import Streams


def run_sampler(model, steps, problem=None, **settings):
    """Draws and the last Info."""
    method = component("inference", "importance_sampling", **settings)
    rng = Streams(0)
    state = method.init(model, problem, rng)
    batch = None if problem is None else problem.train
    for _ in range(steps):
        state, info = method.step(state, batch, rng)
    return method.posterior(state), info


def weighted_moment_z(draws, model):
    """Largest |z| of the moments; errors are from the self-normalised estimates of single
    chains."""
    # [C, N, 1]
    weights = draws.log_weights.softmax(1)[..., None]
    worst = []
    moments = (draws.mean, model.first), (draws.second_moment, model.second)
    for power, (pooled, exact) in enumerate(moments, start=1):
        per_chain = (weights * draws.values**power).sum(1)  # [C, P']
        error = per_chain.std(0) / len(per_chain) ** 0.5
        worst.append(float(((pooled - exact) / error).abs().max()))
    return max(worst)


def test_estimate_matches_literal_ratio_of_sums():
    model = correlated_gaussian()
    draws, info = run_sampler(model, 7, chains=5, proposal="student_t", dof=4.0, inflation=1.3)
    centre, L = laplace(model, model.sample_prior(4, generator(0)), None)
    scale = 1.3**2 * L @ L.T
    q = torch.from_numpy(stats.multivariate_t.pdf(draws.flat, centre, scale, 4.0))
    w = model.log_prior(draws.flat).exp() / q
    assert_close(draws.second_moment, w @ draws.flat**2 / w.sum())
    assert_close(draws.log_weights.exp().flatten(), w)
    ess = float(w.sum() ** 2 / w.square().sum())
    assert weight_ess(draws.log_weights) == pytest.approx(ess)
    expected = {"ess": ess, "largest_weight": w.max() / w.sum(), "log_evidence": w.mean().log()}
    for name, value in expected.items():
        assert float(info[name]) == pytest.approx(float(value)), name


@pytest.mark.parametrize(
    ("target", "proposal", "inflation"),
    [
        (correlated_gaussian, "gaussian", 1.5),
        (correlated_gaussian, "student_t", 1.0),
        (GammaTarget, "student_t", 1.0),
        (TwoModes, "gaussian", 3.0),
        (TwoModes, "student_t", 1.5),
        (correlated_gaussian, "mixture", 1.0),
        (GammaTarget, "mixture", 1.0),
        (TwoModes, "mixture", 1.0),
    ],
)
def test_moments_match_target(target, proposal, inflation):
    model = target()
    draws, _ = run_sampler(model, 1000, chains=100, proposal=proposal, inflation=inflation)
    assert weighted_moment_z(draws, model) < 4
    assert pareto_k(draws.log_weights) < 0.5


def test_thin_proposal_tails_are_detected():
    """log Gamma falls like e^{aθ} on the left, and a Gaussian falls faster, so that the weights
    have infinite variance for any inflation."""
    draws, _ = run_sampler(GammaTarget(), 1000, chains=100, proposal="gaussian", inflation=1.5)
    assert pareto_k(draws.log_weights) > 0.5  # infinite variance


def test_zero_density_draws_have_zero_weight():
    class Gamma(TwoModes):
        """Gamma(5, 2) of θ itself: −∞ for θ ≤ 0."""

        def __init__(self):
            self.first = double([2.5])
            self.second = double([7.5])

        def sample_prior(self, n, generator):
            return 1 + super().sample_prior(n, generator)

        def log_prior(self, theta):
            x = theta[:, 0]
            return torch.where(x > 0, 4 * x.log() - 2 * x, -torch.inf)

    model = Gamma()
    draws, _ = run_sampler(model, 1000, chains=100)
    assert torch.equal(draws.log_weights == -torch.inf, draws.draws[..., 0] <= 0)
    assert (draws.log_weights == -torch.inf).any()
    assert weighted_moment_z(draws, model) < 4


@pytest.mark.parametrize("mutant", ["no proposal density", "upside down", "no Jacobian"])
def test_wrong_weights_are_detected(mutant):
    model = GammaTarget(jacobian=mutant != "no Jacobian")
    draws, _ = run_sampler(model, 1000, chains=100)
    lp = model.log_prior(draws.flat).view(100, -1)
    log_q = lp - draws.log_weights
    wrong = {
        "no proposal density": lp,
        "upside down": log_q - lp,
        "no Jacobian": draws.log_weights,
    }[mutant]
    broken = Draws(draws.draws, draws.start, draws.names, draws.model, log_weights=wrong)
    assert weighted_moment_z(broken, model) > 4


def test_errors_obey_the_central_limit_theorem():
    """Proposition 4.1.1 with σ²_NIS(f) = E_q[(w/E_q w)² (f − πf)²], which the notes leave open; f =
    x, π and q Gaussian."""
    c = 1.5
    T = 400
    draws, _ = run_sampler(white(1), T, chains=3000, proposal="gaussian", inflation=c)
    estimates = (draws.log_weights.softmax(1) * draws.draws[..., 0]).sum(1)  # [C], each of T draws
    exact = c**2 / math.sqrt(2 * c**2 - 1) * c**2 / (2 * c**2 - 1)
    z = (T * estimates.square().mean() - exact) / (T * estimates.square().std() / 3000**0.5)
    assert abs(z) < 4
    assert abs(float(estimates.mean() / estimates.std()) * 3000**0.5) < 4


@pytest.mark.parametrize("noise", ["learned", 0.5])
@pytest.mark.parametrize("proposal", ["prior", "student_t", "gaussian", "mixture"])
def test_moments_and_evidence_match_linear_regression(proposal, noise):
    problem = small_problems.real(n=6, n_inputs=1, n_tasks=1, missing=0.2)
    keys = {"noise": noise, "noise_shape": 4.0, "prior_scale": 1.0, "intercept_scale": 1.0}
    model = component("model", "linear_regression", **keys).build(problem, Streams(0))
    model.first, model.second = regression_moments(model, problem.train)
    draws, info = run_sampler(
        model, 1000, problem=problem, chains=100, proposal=proposal, inflation=1.2
    )
    assert weighted_moment_z(draws, model) < 4
    w = draws.log_weights.exp()
    error = float(w.mean(1).std() / w.mean() / 10)  # relative error of 100 chains
    assert (
        abs(float(info["log_evidence"]) - float(model.log_evidence(problem.train)))
        < 4 * error + 1e-9
    )
    assert draws.stats["lp"].shape == draws.log_weights.shape == (100, 1000)


class Ridge(TwoModes):
    """Density without curvature along x − y, which is improper."""

    def sample_prior(self, n, generator):
        return normal(generator, n, 2)

    def log_prior(self, theta):
        return -(theta.sum(1) ** 2)


class Nan(TwoModes):
    def log_prior(self, theta):
        return super().log_prior(theta) + torch.where(theta[:, 0] > 3, torch.nan, 0.0)


class Nowhere(TwoModes):
    def log_prior(self, theta):
        return theta.new_full((len(theta),), -torch.inf)


@pytest.mark.parametrize(
    ("model", "steps", "error", "message"),
    [
        (
            Ridge,
            1,
            ConfigMismatchError,
            r"inference\.proposal: .* no maximum with curvature in every direction",
        ),
        (Nan, 50, NumericalError, "an importance weight is not a number at step"),
        (
            Nowhere,
            1,
            NumericalError,
            "not finite at any of 100 draws",
        ),
    ],
)
def test_densities_without_weights_are_refused(model, steps, error, message):
    with pytest.raises(error, match=message):
        sample_target("importance_sampling", model(), steps)


def test_prior_without_weight_is_reported():
    whole = small_problems.real(n=6, n_inputs=1, n_tasks=1)
    model = component("model", "linear_regression").build(whole, Streams(0))
    model.log_likelihood = lambda theta, batch: theta.new_full((len(theta), 1), -torch.inf)
    message = r"100 draws .*; change inference\.proposal"
    with pytest.raises(NumericalError, match=message):
        run_sampler(model, 1, problem=whole, proposal="prior")
