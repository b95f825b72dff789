"""The laboratory: what it finds of estimators whose bias and variance are known, and that it leaves
the training alone."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from omegaconf import OmegaConf
from support.runs.configured import component, generator, load, normal
from support.runs.offered_pairs import check_pairs
from support.small.small_bernoulli import binary_rows, every_z, small_dvae
from support.small.small_problems import assert_same_state, real, resumed, train
from torch import Tensor, nn
from torch.distributions import MultivariateNormal, kl_divergence

from components.contracts.costs.meters import metered
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import Beside
from components.inference.variational.laboratory.evidence import log_evidence, log_joint
from components.inference.variational.laboratory.frozen import Frozen, add_times, add_totals
from components.inference.variational.laboratory.spread import (
    MeasuredEstimator,
    Over,
    measure_spread,
    spread_at_batch,
    spread_over_batches,
    time_in_turn,
    time_ratios,
)
from runner import CONF
from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.errors import ConfigError
from runner.execution.rng import Streams

F64 = torch.float64
LINEAR = component("model", "linear_regression", noise=0.25, prior_scale=1.2, intercept_scale=3.0)
TRAIN = {
    "name": "gaussian_vi",
    "covariance": "diagonal",
    "noise": "rows",
    "draws": 10,
    "initial_std": 0.3,
}
LEARNER = {"name": "context_free_cv", "solver": "moving_average", "decay": 0.9}


def laboratory(**changes):
    values = OmegaConf.to_container(OmegaConf.load(CONF / "inference/gradient_variance.yaml"))
    small = {
        "at": [0, 3],
        "iterations": [2, 30],
        "draws": 60,
        "batches": 2,
        "train": TRAIN,
        "gradients": ["reparam", LEARNER],
    }
    return build_component(
        "inference",
        expand_component("inference", values | small | changes, "inference"),
        "inference",
    )


def regression():
    return real(n=24, n_tasks=1, missing=0.0, batch_size=6)


# ---- estimators that are known
# -----------------------------------------------------------------------------------------
class Vector(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.zeros(3, dtype=F64))


class Known(Gradient):
    """ĝ/N = mean of the rows + offset + sd · noise; counts how often it learnt."""

    requires = Requirements(capabilities=frozenset())
    unbiased: ClassVar[bool] = True
    sd: float
    offset: float

    def init(self, module, rng):
        return [0]

    def estimate(self, module, batch, rng, state):
        state[0] += 1
        noise = normal(rng.noise, 3)
        g = batch.x.mean(0) + self.offset + self.sd * noise
        return [g * batch.scale * batch.n_rows], {"elbo": g.sum()}, state


def known(sd=1.0, offset=0.0):
    return MeasuredEstimator("known", Known(name="known", sd=sd, offset=offset), [0], Streams(0))


def rows(m, seed=0, sd=1.0):
    x = 2 + sd * normal(generator(seed), m, 4, 3)
    return [Rows(batch, 5.0) for batch in x]


def test_moments_of_estimates_are_those_of_numpy():
    g = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4]
    found = measure_spread(torch.from_numpy(row) for row in g)
    assert np.allclose(found.mean, g.mean(0))
    assert np.allclose(found.variance, g.var(0, ddof=1))
    assert found.trace == pytest.approx(np.trace(np.cov(g.T)))
    assert found.norm_variance == pytest.approx(np.linalg.norm(g, axis=1).var(ddof=1))


def test_times_are_compared_within_a_round():
    """A machine that slows down tenfold after the first round leaves the ratio as it is."""
    assert time_ratios([[1.0, 10.0, 10.0], [3.0, 30.0, 30.0]]) == [1.0, 3.0]
    watched = [known(), known()]
    seconds = time_in_turn(watched, Vector(), rows(1)[0], [Streams(k) for k in range(2)], 5)
    assert [len(times) for times in seconds] == [5, 5]
    assert all(one.state == [0] for one in watched)


def test_variance_times_time_is_the_product_of_both_ratios():
    scores = {"plain": {"trace_ratio": 1.0}, "twice as long": {"trace_ratio": 0.25}}
    add_times(scores, [[0.001, 0.003], [0.002, 0.006]])
    assert scores["plain"] == {"trace_ratio": 1.0, "milliseconds": 2.0, "variance_seconds": 1.0}
    assert scores["twice as long"]["variance_seconds"] == pytest.approx(0.5)


def test_what_was_learnt_is_held_while_it_is_measured():
    one = known()
    spread_at_batch(one, Vector(), rows(1)[0], Streams(1), 10, [True])
    assert one.state == [0]
    one.learn(Vector(), rows(1)[0])
    assert one.state == [1]


def test_the_share_of_the_minibatch_and_the_bias_of_known_estimators():
    """Rows N(0, 1), four a batch: the variance of their mean is 1/4 a component, that of the noise
    sd²."""
    module, batches = Vector(), rows(2_000)
    watched = [known(0.5), known(1.0), known(0.5, offset=0.2)]
    found = spread_over_batches(watched, module, batches, [Streams(k) for k in range(3)], [True])
    assert found[0].minibatch_share == pytest.approx(0.25 / (0.25 + 0.25), abs=0.03)
    assert found[1].minibatch_share == pytest.approx(0.25 / (0.25 + 1.0), abs=0.03)
    assert found[1].bias_p > 0.01
    assert abs(found[1].bias) < 4 * 1.25 * 3 / 2_000**0.5
    assert found[2].bias_p < 1e-3
    assert found[2].bias == pytest.approx(3 * 0.2**2, rel=0.5)


def test_p_values_of_unbiased_estimators_are_uniform():
    p = []
    for k in range(80):
        pair = [known(0.5), known(1.0)]
        p.append(
            spread_over_batches(
                pair, Vector(), rows(20, k), [Streams(k), Streams(1_000 + k)], [True]
            )[1].bias_p
        )
    assert 0.03 < np.mean(np.array(p) < 0.1) + 0.03 < 0.25
    assert 0.35 < np.mean(p) < 0.65


# ---- in a run
# --------------------------------------------------------------------------------------------------------
def test_training_is_what_it_is_without_the_laboratory():
    problem, inference = regression(), laboratory()
    alone, _ = train(inference.train, LINEAR, problem, 6)
    watched, _ = train(inference, LINEAR, problem, 6)
    assert_same_state(alone, watched.fitting)
    assert watched.findings.scores
    assert watched.findings.curves


def scores(inference, steps=4):
    problem = regression()
    state, _ = train(inference, LINEAR, problem, steps)
    return inference.posterior(state).scores()


def test_variance_falls_as_the_number_of_samples():
    found = scores(
        laboratory(
            gradients=["reparam", {"name": "reparam", "n_samples": 4}], draws=150, iterations=[]
        )
    )
    for t in (0, 3):
        assert found[f"trace_ratio/reparam n_samples=4/{t}"] == pytest.approx(0.25, rel=0.25)
        assert found[f"trace_ratio/reparam n_samples=1/{t}"] == 1.0
        assert found[f"bias_p/reparam n_samples=4/{t}"] > 0.01
    assert {"milliseconds", "variance_seconds", "norm_ratio", "minibatch_share"} <= {
        name.split("/")[0] for name in found
    }


def test_the_best_ratio_is_below_what_was_learnt():
    found = scores(laboratory(best_orders=[1, 2], best_draws=400))
    for t in (0, 3):
        assert (
            found[f"best_context_free/order 1/{t}"]
            < 1.05 * found[f"trace_ratio/context_free_cv/{t}"]
        )
        assert (
            found[f"best_per_row/order 2/{t}"]
            < found[f"best_per_row/order 1/{t}"]
            < found[f"best_context_free/order 1/{t}"]
        )


def test_estimators_learn_beside_the_training_where_there_are_no_iterations():
    problem, inference = regression(), laboratory(iterations=[], at=[3])
    before, _ = train(inference, LINEAR, problem, 2)
    after, _ = train(inference, LINEAR, problem, 4)
    _, learner = after.learnt
    assert learner.weight > before.learnt[1].weight > 0
    assert not after.findings.curves
    alone, _ = train(inference.train, LINEAR, problem, 4)
    assert_same_state(alone, after.fitting)


@pytest.mark.parametrize("iterations", [[], [2, 5]])
def test_killed_and_resumed_it_finds_the_same(iterations, tmp_path):
    problem, inference = regression(), laboratory(iterations=iterations, at=[1, 4], draws=4)
    whole, _ = train(inference, LINEAR, problem, 5)
    again, _ = resumed(inference, LINEAR, problem, 5, 2, tmp_path)

    def untimed(state):
        return {
            k: v
            for k, v in state.findings.scores.items()
            if k.split("/")[0] not in ("milliseconds", "total_seconds", "variance_seconds")
        }

    assert untimed(whole) == untimed(again)
    assert whole.findings.curves == again.findings.curves
    assert_same_state(whole, again)


def test_of_the_guide_alone():
    """Of a Bernoulli model the parameters of p are left out: their gradient has its variance in
    every estimator."""
    problem = binary_rows()
    model = small_dvae(problem)
    frozen = Frozen(model, problem, 0, Streams(0), True)
    looked_at = [
        name
        for (name, _), wanted in zip(
            model.named_parameters(), frozen.select_parameters(), strict=True
        )
        if wanted
    ]
    assert looked_at
    assert all(name.startswith("down") for name in looked_at)


def test_its_table_and_its_figure(tmp_path):
    inference = laboratory(draws=4)
    state, _ = train(inference, LINEAR, regression(), 4)
    posterior = inference.posterior(state)
    posterior.artefacts(tmp_path)
    table = pd.read_csv(tmp_path / "tables/gradient_variance.csv")
    one = table[
        (table.score == "trace_ratio") & (table.gradient == "context_free_cv") & (table.step == 3)
    ]
    assert list(one.iteration.fillna(-1)) == [-1, 2, 30]
    assert one.value.iloc[0] == one.value.iloc[2]
    assert one.value.iloc[0] == pytest.approx(posterior.scores()["trace_ratio/context_free_cv/3"])
    (figure,) = (f for name, f in posterior.figures().items() if name == "gradient_variance")
    assert len(figure.axes) == 4
    assert isinstance(posterior.predict(regression().test.x, torch.Generator()).mean, Tensor)


# ---- VarGrad's coefficient and the evidence
# ----------------------------------------------------------------------------
def test_corrections_are_those_of_an_enumerated_model():
    """δ_i/E a = Cov(f, h_i²)/(Var(h_i) E f), eq. (5.14), over all 64 values of z, of each row
    alone."""
    problem = binary_rows()
    model = small_dvae(problem)
    frozen = Frozen(model, problem, 0, Streams(0), True)
    found = frozen.corrections(1, 20_000, frozen.select_parameters())
    named = dict(model.named_parameters())
    z = every_z()
    for row in range(problem.n):
        batch = problem.train.part(slice(row, row + 1), 2.0)
        log_q = model.log_q(batch, z)[:, 0]
        f, q = (log_q - model.log_joint(batch, z)[:, 0]).detach(), log_q.exp().detach()
        for name, ratio in found.items():
            # [64, D]
            h = torch.stack(
                [torch.autograd.grad(one, named[name], retain_graph=True)[0] for one in log_q]
            )
            exact = (q * (f - q @ f)) @ h.square() / (q @ h.square()) / (q @ f)
            assert torch.allclose(ratio[row], exact, atol=0.06, rtol=0.06), name


def test_corrections_of_a_global_q_are_those_of_the_whole_bound():
    """f = log q(θ) − log p(y, θ) of all rows together: by the scores ε/σ and ε² − 1, written
    out."""
    problem = real(n=24, n_tasks=1, missing=0.0)
    state, rng = train(laboratory(train=TRAIN | {"noise": "shared"}).train, LINEAR, problem, 3)
    q = state.module
    found = Frozen(q, problem, 0, Streams(0), False).corrections(1, 40_000, [True, True])
    with torch.no_grad():
        noise = normal(rng.evaluation, 40_000, len(q.mean))
        theta = q.transform(noise)
        f = q.log_density(theta) - log_joint(q.target.model, theta, problem.train)
        for name, h in (("mean", noise / q.log_std.exp()), ("log_std", noise**2 - 1)):
            exact = (f - f.mean()) @ h.square() / h.square().sum(0) / f.mean()
            assert found[name].shape == (1, len(q.mean))
            torch.testing.assert_close(found[name][0], exact, rtol=0.1, atol=0.03)


def test_the_evidence_of_a_linear_regression_is_found():
    problem = regression()
    model = LINEAR.build(problem, Streams(0))
    exact = float(model.log_evidence(problem.train))
    found = [
        float(log_evidence(model, problem.train, torch.zeros(4, dtype=F64), 200, Streams(s).noise))
        for s in range(3)
    ]
    # the Laplace approximation is the posterior
    assert found == pytest.approx([exact] * 3, abs=1e-8)


def test_the_evidence_of_a_logistic_regression_by_quadrature():
    problem = load("logistic_synthetic", n_inputs=1)[0]
    model = component("model", "logistic_regression", intercept_scale=1.0).build(
        problem, Streams(0)
    )
    grid = torch.linspace(-9, 9, 400, dtype=F64)
    theta = torch.cartesian_prod(grid, grid)
    joint = torch.cat([log_joint(model, part, problem.train) for part in theta.split(20_000)])
    exact = float(joint.logsumexp(0)) + 2 * math.log(18 / 399)
    found = [
        float(log_evidence(model, problem.train, torch.zeros(2, dtype=F64), 500, Streams(s).noise))
        for s in range(5)
    ]
    assert np.mean(np.exp(np.array(found) - exact)) == pytest.approx(
        1, abs=5 * np.std(found) / 5**0.5 + 1e-3
    )
    assert np.std(found) < 0.05


def test_kl_divergence_is_that_of_two_normals():
    problem, inference = (
        regression(),
        laboratory(evidence_particles=50, correction_draws=50, draws=4, iterations=[1]),
    )
    state, _ = train(inference, LINEAR, problem, 3)
    model, q = LINEAR.build(problem, Streams(0)), state.fitting.module
    known = model.coefficients(problem.train)
    p = MultivariateNormal(known.m, model.noise * known.covariance)
    exact = float(kl_divergence(MultivariateNormal(q.mean, q.covariance), p).detach())
    assert state.findings.scores["kl/3"] == pytest.approx(exact, rel=0.15)
    assert state.findings.scores["kl_by_q/3"] == pytest.approx(exact, rel=0.15)
    root = state.findings.scores["kl/3"] ** 0.5
    assert state.findings.scores["bound_denominator/3"] == pytest.approx(
        abs(root - state.findings.scores["log_evidence"] / root)
    )
    assert (
        state.findings.scores["correction_q95/all/3"]
        >= state.findings.scores["correction/all/3"]
        > 0
    )
    assert set(inference.posterior(state).figures()) >= {"gradient_variance", "corrections"}


# ---- mistakes
# --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"train": "map"}, "train: map has no gradient to measure; use vi or gaussian_vi"),
        ({"at": [5, 3]}, "at: [5, 3] must increase"),
        ({"iterations": [5, 5]}, "iterations: [5, 5] must increase"),
        ({"draws": 1}, "draws"),
        ({"gradients": []}, "gradients"),
    ],
)
def test_mistakes_are_named(changes, told):
    with pytest.raises(ConfigError) as error:
        laboratory(**changes)
    assert told in str(error.value)


def test_pairs_that_do_not_fit_are_refused():
    titanic = component("dataset", "titanic")
    logistic = component("model", "logistic_regression")
    with pytest.raises(
        ConfigError, match=r"inference\.gradients\.1=arm needs bernoulli_layers, which the q"
    ):
        check_pairs(titanic, logistic, laboratory(gradients=["reparam", "arm"]), None)
    with pytest.raises(ConfigError, match="needs log_joint"):
        check_pairs(
            component("dataset", "images"),
            component("model", "dvae"),
            laboratory(gradients=["reparam"]),
            None,
        )


def test_the_laboratory_streams_are_its_own():
    rng = Streams(0)
    own = Beside(rng, 10**7)
    before = rng.noise.get_state()
    torch.randn(3, generator=own.noise)
    assert torch.equal(before, rng.noise.get_state())


# ---- the estimator of the key ``gradient``
# --------------------------------------------------------------------------------------------------------
def test_training_goes_on_by_the_gradient_after_the_last_freeze():
    problem = regression()
    inference = laboratory(gradients=["reparam"], gradient=LEARNER, iterations=[], at=[3], draws=8)
    frozen, rng = train(inference, LINEAR, problem, 3)
    alone, _ = train(inference.train, LINEAR, problem, 3)
    assert torch.equal(frozen.fitting.module.mean, alone.module.mean)
    assert frozen.fitting.gradient.weight > 0  # what it has learnt next to the training
    after, _ = train(inference, LINEAR, problem, 6)
    own = inference.train.model_copy(update={"gradient": inference.gradient})
    state = frozen.fitting
    for _, batch in problem.batches("minibatch", rng, 3, 6):
        state, _ = own.step(state, batch, rng)
    assert torch.equal(after.fitting.module.mean, state.module.mean)
    plain, _ = train(inference.train, LINEAR, problem, 6)
    assert not torch.equal(after.fitting.module.mean, plain.module.mean)


def test_scores_of_the_gradient_are_those_of_the_same_estimator_in_the_list():
    named = scores(laboratory(iterations=[], at=[3], draws=40))
    own = scores(
        laboratory(gradients=["reparam"], gradient=LEARNER, iterations=[], at=[3], draws=40)
    )
    for score in ("trace", "trace_ratio", "total", "minibatch_share"):
        there, here = named[f"{score}/context_free_cv/3"], own[f"{score}/gradient/3"]
        assert here == pytest.approx(there, rel=0.05), score


def test_the_bias_is_tested_by_groups_of_batches_as_scipy_does():
    from scipy.stats import norm, ttest_1samp

    batches = rows(40)
    watched = [known(0.5), known(0.5, offset=0.5), known(0.5)]
    found = spread_over_batches(watched, Vector(), batches, [Streams(k) for k in range(3)], [True])
    streams = [Streams(k).noise for k in range(2)]
    means = torch.stack(
        [torch.stack([normal(g, 3) for _ in range(2)]).mean(0) for _ in batches for g in streams]
    ).view(len(batches), 2, 3)
    apart = 0.5 * (means[:, 1] - means[:, 0]) + 0.5  # the rows are the same in both
    groups = apart.view(10, 4, 3)
    means = [
        np.mean([float(a @ b) for i, a in enumerate(g) for j, b in enumerate(g) if i != j])
        for g in groups
    ]
    test = ttest_1samp(means, 0.0, alternative="greater")
    assert found[1].bias == pytest.approx(np.mean(means))
    assert found[1].bias_p == pytest.approx(test.pvalue)
    assert found[1].bias_z == pytest.approx(norm.isf(test.pvalue))
    assert found[1].bias_z > 3
    assert 0 <= found[2].bias_z < 3
    assert found[0].bias_z == 0


def test_the_variance_in_all_is_that_of_single_estimates_over_batches():
    (one,) = spread_over_batches([known(0.5)], Vector(), rows(4_000), [Streams(0)], [True])
    assert one.total == pytest.approx(3 * (0.25 + 0.25), rel=0.05)


def test_passes_of_an_estimate_are_counted_by_hand():
    """Each row has its log joint once a draw and pair member, and is differentiated by the
    parameters of p: forward 1, backward 2; of DisARM the other evaluations go forward alone."""
    problem = binary_rows()
    model = metered(small_dvae(problem))
    batch = problem.train
    every = [True] * len(list(model.parameters()))

    def passes(name, **keys):
        one = component("gradient", name, **keys)
        watched = MeasuredEstimator(name, one, one.init(model, Streams(0)), Streams(0))
        return watched.count_passes(model, batch, Streams(0), every)

    n = batch.n_rows
    assert passes("vargrad", n_samples=4) == 4 * n + 2 * 4 * n
    assert passes("reinforce", n_samples=1) == 3 * n
    assert passes("vargrad", n_samples=8) == 2 * passes("vargrad", n_samples=4)


def test_variance_times_passes_is_relative_to_the_first():
    values = {"plain": {}, "two": {}}
    overs = [Over(2.0, 0.5, 0.0, 1.0, 0.0), Over(1.0, 0.5, 0.0, 1.0, 0.0)]
    add_totals(values, overs, [30.0, 90.0], [[0.001, 0.003], [0.002, 0.006]])
    assert values["two"]["total_passes"] == pytest.approx(0.5 * 3)
    assert values["two"]["total_seconds"] == pytest.approx(0.5 * 2)
    assert values["plain"]["total_passes"] == values["plain"]["total_seconds"] == 1
