"""Checks of a run: each passes where all is well, fails on what deserves it, and says so where it
cannot be made."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component, generator
from support.series.small_sequences import sequence, system
from support.targets.known_targets import F64, GaussianTarget

from components.contracts.checks import FINITE
from components.contracts.problems import Batch
from components.contracts.roles import FinishedRun
from components.evaluation.checks.filters import observation_checks, particle_checks
from components.evaluation.checks.finite_scores import finite_scores
from components.evaluation.checks.mixing import draws_checks
from components.evaluation.run_checks import bound_check, run_checks
from components.inference.gaussian_weights.swag import SwagState
from components.inference.variational.laboratory.measured import Findings, Measured
from components.metrics import limits
from components.metrics.diagnostics import convergence
from components.posteriors.draws import Draws
from components.problems.supervised import Supervised
from components.series.posteriors.filtered import Filtered
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.execution.signals import RunPrunedError
from runner.record.facts import read

WELL = {
    "rhat": 1.003,
    "ess": 900.0,
    "ess_tail": 700.0,
    "e_bfmi": 0.8,
    "divergences": 0.0,
}
STUCK = 0.02  # acceptance rate of a chain that hardly moves


def draws(
    n: int = 500, chains: int = 4, replicates: int = 1, energy: bool = True, least: float = 0.8
) -> Draws:
    """Draws at zero; the last chain accepts with rate ``least``, the others with 0.8."""
    rate = torch.full((chains * replicates, n), 0.8)
    rate[-1] = least
    stats = {"acceptance_rate": rate} | ({"energy": torch.zeros_like(rate)} if energy else {})
    zeros = torch.zeros(chains * replicates, n, 2, dtype=F64)
    return Draws(zeros, zeros[:, 0], stats=stats, replicates=replicates)


def finished(state=None, trace=()) -> FinishedRun:
    problem = SimpleNamespace(batches=lambda batch_kind, rng, start, stop: iter([(stop, None)]))
    return FinishedRun(problem, None, state, {}, trace, Streams(0))


def verdicts(checks) -> dict[str, bool | None]:
    return {check.name: check.passed for check in checks}


def test_chains_that_mixed_pass_every_check():
    assert list(verdicts(draws_checks(draws(), WELL)).values()) == [True] * 6


@pytest.mark.parametrize(
    ("name", "value", "failing"),
    [
        ("rhat", 1.011, "R̂ is below 1.01"),
        ("rhat", math.inf, "R̂ is below 1.01"),
        ("rhat", math.nan, "R̂ is below 1.01"),
        ("ess", 399.0, "bulk ESS is above 100 a chain"),  # of four chains
        ("ess_tail", 399.0, "tail ESS is above 100 a chain"),
        ("e_bfmi", 0.29, "E-BFMI is above 0.3"),
        ("divergences", 1.0, "no transition diverges"),
    ],
)
@pytest.mark.parametrize("replicates", [1, 3])
def test_each_check_of_chains_fails_alone(name, value, failing, replicates):
    scores = {k: v if replicates == 1 else [v] * replicates for k, v in WELL.items()}
    # the worst replicate decides
    scores[name] = value if replicates == 1 else [WELL[name], value, WELL[name]]
    found = verdicts(draws_checks(draws(replicates=replicates), scores))
    assert [check for check, passed in found.items() if not passed] == [failing]


@pytest.mark.parametrize(
    ("energy", "least", "passed"),
    [
        (True, 0.7, True),
        (True, 0.234, False),
        (True, STUCK, False),
        (False, 0.234, True),
        (False, STUCK, False),
    ],
)
@pytest.mark.parametrize("replicates", [1, 3])
def test_acceptance_check_takes_the_worst_chain(energy, least, passed, replicates):
    scores = {name: [value] * replicates for name, value in WELL.items()}
    checks = draws_checks(
        draws(chains=16, energy=energy, least=least, replicates=replicates), scores
    )
    assert verdicts(checks)["enough proposals are accepted"] is passed


def test_too_few_draws_or_chains_are_not_checked():
    found = draws_checks(draws(n=3, energy=False), {})
    assert [check.passed for check in found] == [None, None, True]
    assert "3 draws a chain, 4 needed" in found[0].detail
    alone = draws_checks(draws(chains=1, energy=False), {"ess": 500.0, "ess_tail": 500.0})
    assert [check.passed for check in alone] == [None, True, True, True]


def test_resting_coordinates_and_the_worst_are_named():
    g = generator(0)
    values = torch.randn(4, 400, 6, generator=g, dtype=F64)
    values[..., 1:5] = 0.0  # a spike that no chain ever leaves
    values[..., 5] += torch.arange(4.0)[:, None]
    found = Draws(values, values[:, 0], ["a", "b", "c", "d", "e", "f"])
    scores, _ = convergence(found)
    (rhat, bulk, _) = draws_checks(found, scores)
    assert rhat.passed is False
    assert "(f), the largest" in rhat.detail
    assert "at rest (always one value): b, c, d and 1 more" in rhat.detail
    assert "(f), the smallest" in bulk.detail
    values[..., 5] = values[..., 0]
    found = Draws(values, values[:, 0], found.names)
    assert all(check.passed for check in draws_checks(found, convergence(found)[0]))
    still = Draws(torch.zeros(4, 400, 1, dtype=F64), torch.zeros(4, 1, dtype=F64), ["a"])
    failed = draws_checks(still, convergence(still)[0])
    assert {check.passed for check in failed} == {False}
    assert "no chain ever moved" in failed[0].detail


@pytest.mark.parametrize(
    ("k", "n", "passed"), [(0.69, 10_000, True), (0.71, 10_000, False), (0.55, 100, False)]
)
def test_pareto_k_of_few_weights_has_to_be_smaller(k, n, passed):
    weighted = Draws(torch.zeros(1, n, 1), torch.zeros(1, 1), log_weights=torch.zeros(1, n))
    (check,) = draws_checks(weighted, {"pareto_k": k, "weight_ess": 50.0})
    assert check.passed is passed
    assert limits.pareto_k(100) == pytest.approx(0.5)


def test_a_filter_whose_weight_lies_on_one_particle_is_found_out():
    trace = [(t, {"ess": [300.0, 250.0]}) for t in range(1, 20)]
    (check,) = particle_checks(trace)
    assert check.passed is True
    (check,) = particle_checks([*trace, (20, {"ess": [300.0, 1.5]}), (21, {"ess": [1.2, 9.0]})])
    assert check.passed is False
    assert check.detail == "smallest ESS 1.2, below 2 at 2 of 21 recorded times, first t = 20"
    assert particle_checks([(1, {"log_evidence": 0.0})]) == []  # an exact filter has no particles


def filtered(ess: torch.Tensor | None = None, weight: torch.Tensor | None = None) -> Filtered:
    """Of two replicates at five times."""
    nothing = torch.zeros(2, 5, 1)
    return Filtered(5, *[nothing] * 5, torch.zeros(2), ess=ess, weight=weight)


def test_weights_are_judged_at_the_times_that_were_not_recorded():
    ess = torch.full((2, 5), 80.0)
    ess[1, 2] = 1.0
    (check,) = particle_checks([(1, {"ess": [80.0, 80.0]})], filtered(ess))
    assert check.passed is False
    assert check.detail == "smallest ESS 1, below 2 at 1 of 5 recorded times, first t = 3"
    ess[1, 2] = 7.5
    (check,) = particle_checks([], filtered(ess))
    assert check.passed is True
    assert check.detail == "smallest ESS 7.5 at t = 3, of 5 recorded times"


def test_a_filter_that_follows_no_observation_says_so():
    problem = sequence(system(), 5, 2)
    equal, uneven = torch.full((2, 5), 100.0), torch.full((2, 5), 100.0)
    uneven[:, 3] = 60.0
    for posterior, passed in (
        (filtered(equal), False),
        (filtered(uneven), True),
        (filtered(torch.linspace(30.5, 60.7, 10).view(2, 5)), True),
        (filtered(weight=torch.full((2, 5), 1e-9)), False),
        (filtered(weight=torch.tensor([[1e-9] * 4 + [1.0], [0.5] * 5])), True),
    ):
        (check,) = observation_checks(posterior, problem)
        assert check.passed is passed, check
    assert "0 of 5 observations" in observation_checks(filtered(equal), problem)[0].detail
    assert observation_checks(filtered(), problem) == []  # an exact filter follows all
    problem.observations[:] = math.nan
    assert observation_checks(filtered(equal), problem)[0].passed is True  # there are none


@pytest.mark.parametrize(
    ("bound", "noise", "passed"),
    [
        (lambda s: -1000 + 500 * s, 1.0, False),  # still on its way
        (lambda s: -500 - 500 * math.exp(-20 * s), 1.0, True),  # arrived
        (lambda s: -500.0, 200.0, True),  # nothing but noise
        (lambda s: 100 * s - 200, 0.0, False),
    ],
)
def test_a_bound_that_still_rises_is_found_out(bound, noise, passed):
    g = generator(0)
    values = [[bound(i / 200) + noise * float(torch.randn((), generator=g))] for i in range(200)]
    assert bound_check(values).passed is passed


def test_a_bound_of_few_recorded_values_is_not_checked():
    check = bound_check([[-1.0]] * 50)
    assert check.passed is None
    assert "50 recorded values, 100 needed" in check.detail


@pytest.mark.parametrize(
    ("scores", "lost"),
    [
        ({"rmse": 1.0, "nlpp": math.inf}, "nlpp inf"),
        ({"rmse": [1.0, math.nan]}, "rmse nan of replicate 2"),
        ({"rmse": 1.0, "rhat": math.nan, "auc/task": math.nan, "pareto_k": -math.inf}, None),
    ],
)
def test_scores_that_are_no_numbers_are_named(scores, lost):
    check = finite_scores(scores, SimpleNamespace())
    assert check.passed is (lost is None)
    assert lost is None or check.detail == lost


def labelled(*has: bool, target: str = "real") -> Supervised:
    """A problem whose tasks a, b, … have test labels, or none."""
    x, mask = torch.zeros(4, 1, dtype=F64), torch.tensor([has] * 4)
    y = (
        torch.zeros(4, len(has), dtype=F64)
        if target == "real"
        else torch.zeros(4, len(has), dtype=torch.long)
    )
    batch = Batch(x, y, mask, 1.0)
    return Supervised("test", target, batch, batch, None, task_names=list("abc")[: len(has)])


def test_only_a_task_without_test_labels_excuses_its_scores():
    scores = {"nlpp": math.nan, "nlpp/a": math.nan, "rmse/a": math.nan, "nlpp/b": math.nan}
    check = finite_scores(scores, labelled(True, False))
    assert check.passed is False
    assert check.detail == "nlpp nan, nlpp/a nan, rmse/a nan"
    check = finite_scores({"nlpp": 1.0, "nlpp/a": 1.0, "nlpp/b": math.nan}, labelled(True, False))
    assert check.passed is True
    assert check.detail == "3 scores; nlpp/b without a value: no test row has a label of the task"
    assert finite_scores({"nlpp/b": math.inf}, labelled(True, False)).passed is False
    assert finite_scores(scores, labelled(False, False)).passed is True
    assert finite_scores({"nelbo": math.nan}, labelled(False, False)).passed is False


def test_a_label_that_is_held_impossible_is_no_divergence():
    assert finite_scores({"nlpp": math.inf}, labelled(True, target="classes")).passed is True
    assert finite_scores({"nlpp": math.nan}, labelled(True, target="classes")).passed is False
    # no density of numbers is 0
    assert finite_scores({"nlpp": math.inf}, labelled(True)).passed is False
    assert finite_scores({"nmse": math.inf, "mape": math.inf}, SimpleNamespace()).passed is True
    assert finite_scores({"nmse": math.nan}, SimpleNamespace()).passed is False


def test_svgd_has_no_chains_to_mix():
    method = component("inference", "svgd")
    found = run_checks(SimpleNamespace(), draws(), method, None, WELL, [], Streams(0), smoke=False)
    assert list(verdicts(found)) == [FINITE]


def test_a_smoke_run_is_not_judged_by_its_length():
    method = component("inference", "sgld")
    found = run_checks(
        SimpleNamespace(), draws(), method, None, WELL | {"rhat": 3.0}, [], Streams(0), smoke=True
    )
    assert [check.passed for check in found] == [True, None]


@pytest.mark.parametrize(("step", "passed"), [(0.1, True), (1.9, True), (2.1, False)])
def test_steps_too_large_for_the_curvature_are_found_out(step, passed):
    method, rng = component("inference", "sgld", step_size=step, chains=3, burn_in=0), Streams(0)
    target = GaussianTarget(torch.zeros(2, dtype=F64), torch.eye(2, dtype=F64))
    problem = SimpleNamespace(batches=lambda batch_kind, rng, start, stop: iter([(stop, None)]))
    state = method.init(target, None, rng)
    for _ in range(5):
        state, _ = method.step(state, None, rng)
    found = run_checks(problem, None, method, state, {}, [], rng, smoke=False)
    assert verdicts(found) == {FINITE: True, "steps are small against the curvature": passed}


def test_a_resumed_run_is_checked_by_all_its_steps(make_job, tmp_path):
    """Half of the weight on one particle, at a time before the stop, is not forgotten by it."""
    argv = ["+experiment=stochastic_volatility", "dataset.n_steps=40", "replicates=2", "inference.particles=2",
            "record_every=1", "eval_every=20", "checkpoint_every=10"]  # fmt: skip

    def stop(step, _):
        raise RunPrunedError(f"at {step}")

    whole = make_job(*argv)
    run(whole)
    stopped = make_job(*argv, f"output_dir={tmp_path / 'stopped'}")
    with pytest.raises(RunPrunedError):
        run(stopped, stop)
    run(stopped)
    checks = [read(job.folder)["checks"] for job in (whole, stopped)]
    assert checks[0] == checks[1]
    (found,) = [
        check
        for check in checks[0]["0"]
        if check["check"] == "no particle carries half of the weight"
    ]
    assert found["passed"] is False
    assert "of 40 recorded times, first t = 1" in found["detail"]


def test_a_run_records_its_checks_and_changes_no_score(make_job):
    job = make_job(
        "dataset=gaussian",
        "model=target_density",
        "inference=hmc",
        "steps=40",
        "inference.warmup=20",
    )
    _, result = run(job)
    checks = read(job.folder)["checks"]["0"]
    assert {check["about"] for check in checks} == {"run"}
    found = {check["check"]: check["passed"] for check in checks}
    assert found[FINITE] is True
    assert found["bulk ESS is above 100 a chain"] is False  # of 20 draws
    assert not any("check" in name for name in result)
    assert (
        (job.folder / "tables" / "checks.csv")
        .read_text()
        .startswith("check,passed,detail\nscores are finite,True")
    )


def test_gradients_marked_unbiased_must_have_one_mean():
    seen = Measured(
        ["reparam", "vargrad", "gumbel_softmax"], [True, True, False], [0, 10], [], Findings(), None
    )
    p = {f"bias_p/{label}/{t}": 0.3 for label in seen.labels for t in seen.at}
    assert seen.check_bias(p).passed is True
    # it says so itself
    assert seen.check_bias(p | {"bias_p/gumbel_softmax/10": 1e-9}).passed is True
    wrong = seen.check_bias(p | {"bias_p/vargrad/10": [0.5, 1e-5]})
    assert wrong.passed is False
    assert wrong.detail == "smallest p 3e-05, corrected for 3: vargrad after 10 steps"
    # three were looked at
    assert seen.check_bias(p | {"bias_p/vargrad/10": [0.5, 4e-4]}).passed is True
    assert seen.check_bias({}).passed is None
    assert replace(seen, unbiased=[False, True, False]).check_bias(p).passed is None


def discriminator(losses):
    trace = [(t, {"discriminator_loss": loss}) for t, loss in enumerate(losses)]
    (check,) = component("inference", "avb").checks(finished(trace=trace))
    return check


@pytest.mark.parametrize(
    ("last", "passed"), [(1.3, True), (0.06, True), (0.04, False), (0.0, False)]
)
def test_a_saturated_discriminator_is_told(last, passed):
    check = discriminator([1.386] * 90 + [last] * 10)
    assert check.passed is passed
    assert f"loss {last:.3g} over the last tenth, chance is 1.39" in check.detail
    assert ("discriminator=none" in check.detail) is not passed
    beside = discriminator([[1.386, last, 1.2]] * 100)  # one of them is enough
    assert beside.passed is passed
    assert "the smallest of 3 replicates" in beside.detail


@pytest.mark.parametrize(("proposal", "passed"), [("gaussian", False), ("student_t", True)])
def test_a_proposal_of_lighter_tails_fails(proposal, passed):
    class Heavy(GaussianTarget):
        def log_prior(self, theta):
            return -3 * (theta.square().sum(1) / 5).log1p()  # Student's t, ν = 5, P = 1

    method = component("inference", "importance_sampling", proposal=proposal)
    state = method.init(Heavy(torch.zeros(1, dtype=F64), torch.eye(1, dtype=F64)), None, Streams(0))
    for _ in range(100):
        state, _ = method.step(state, None, Streams(0))
    (check,) = method.checks(finished(state))
    assert check.passed is passed
    assert ("student_t" in check.detail) is not passed


@pytest.mark.parametrize(
    ("points", "passed"),
    [
        ([[1.0, 2.0], [1.5, 2.0], [1.2, 2.0]], True),
        ([[1.0, 2.0]] * 5, False),
        ([[1.0, 2.0]], False),
        ([[1.0, 0.0], [1.0, 1e-30], [1.0, 2e-30]], False),
    ],
)
def test_swag_of_zero_variance_fails(points, passed):
    method = component("inference", "swag")
    zeros = torch.zeros(2, dtype=F64)
    state = SwagState(
        model=None,
        weights=torch.nn.ParameterDict(),
        optimizer=None,
        shown=[],
        mean=zeros,
        square=zeros,
        deviations=zeros.new_zeros(0, 2),
    )
    for theta in torch.tensor(points, dtype=F64):
        state = method.collect(state, theta)
    (check,) = method.checks(finished(state))
    assert check.passed is passed
