"""Checks of a run: each passes on good runs, fails on deliberate faults, and reports if it is not
applicable."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component, double, generator
from support.targets.known_targets import F64, Tailed, white

from components.contracts.checks import FINITE
from components.contracts.problems import Batch
from components.contracts.roles import FinishedRun
from components.evaluation.checks.finite_scores import finite_scores
from components.evaluation.run_checks import bound_check, run_checks
from components.inference.gaussian_weights.swag import SwagState
from components.inference.variational.laboratory.measured import Findings, Measured
from components.problems.supervised import Supervised
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.execution.signals import RunPrunedError
from runner.record.facts import read


@pytest.mark.parametrize(
    ("bound", "noise", "passed"),
    [
        (lambda s: -1000 + 500 * s, 1.0, False),  # not yet converged
        (lambda s: -500 - 500 * math.exp(-20 * s), 1.0, True),  # converged
        (lambda s: -500.0, 200.0, True),  # only noise
        (lambda s: 100 * s - 200, 0.0, False),
    ],
)
def test_rising_bound_is_detected(bound, noise, passed):
    g = generator(0)
    values = [[bound(i / 200) + noise * float(torch.randn((), generator=g))] for i in range(200)]
    assert bound_check(values).passed is passed


def test_bound_with_few_values_is_not_checked():
    check = bound_check([[-1.0]] * 50)
    assert check.passed is None
    assert "50 recorded values, 100 required" in check.detail


def labelled_problem(*has, target="real"):
    """A problem with tasks a, b, …, with or without test labels."""
    x = torch.zeros(4, 1, dtype=F64)
    mask = torch.tensor([has] * 4)
    y = torch.zeros(4, len(has), dtype=F64 if target == "real" else torch.long)
    batch = Batch(x, y, mask, 1.0)
    return Supervised("test", target, batch, batch, None, task_names=list("abc")[: len(has)])


HALF = labelled_problem(True, False)
NONE = labelled_problem(False, False)
BY_TASK = {"nlpp": math.nan, "nlpp/a": math.nan, "rmse/a": math.nan, "nlpp/b": math.nan}


@pytest.mark.parametrize(
    ("scores", "problem", "passed", "detail"),
    [
        ({"rmse": 1.0, "nlpp": math.inf}, None, False, "nlpp inf"),
        ({"rmse": [1.0, math.nan]}, None, False, "rmse nan of replicate 2"),
        (
            {"rmse": 1.0, "rhat": math.nan, "auc/task": math.nan, "pareto_k": -math.inf},
            None,
            True,
            "",
        ),
        # only a task without test labels excuses its scores
        (BY_TASK, HALF, False, "nlpp nan, nlpp/a nan, rmse/a nan"),
        (
            {"nlpp": 1.0, "nlpp/a": 1.0, "nlpp/b": math.nan},
            HALF,
            True,
            "3 scores; nlpp/b without a value: no test row has a label of the task",
        ),
        ({"nlpp/b": math.inf}, HALF, False, ""),
        (BY_TASK, NONE, True, ""),
        ({"nelbo": math.nan}, NONE, False, ""),
        # a label of probability 0 is not a divergence; densities of numbers are positive
        ({"nlpp": math.inf}, labelled_problem(True, target="classes"), True, ""),
        ({"nlpp": math.nan}, labelled_problem(True, target="classes"), False, ""),
        ({"nlpp": math.inf}, labelled_problem(True), False, ""),
        ({"nmse": math.inf, "mape": math.inf}, None, True, ""),
        ({"nmse": math.nan}, None, False, ""),
    ],
)
def test_nonfinite_scores_are_named(scores, problem, passed, detail):
    check = finite_scores(scores, problem or SimpleNamespace())
    assert check.passed is passed
    assert not detail or check.detail == detail


@pytest.mark.parametrize(("step", "passed"), [(0.1, True), (1.9, True), (2.1, False)])
def test_steps_too_large_for_curvature_are_detected(step, passed):
    method = component("inference", "sgld", step_size=step, chains=3, burn_in=0)
    rng = Streams(0)
    target = white(2)
    problem = SimpleNamespace(batches=lambda batch_kind, rng, start, stop: iter([(stop, None)]))
    state = method.init(target, None, rng)
    for _ in range(5):
        state, _ = method.step(state, None, rng)
    checks = run_checks(FinishedRun(problem, None, method, state, {}, [], rng), smoke=False)
    verdicts = {check.name: check.passed for check in checks}
    assert verdicts == {FINITE: True, "steps are small relative to the curvature": passed}


def test_resumed_run_is_checked_over_all_steps(make_job, tmp_path):
    """After resuming, the run still reports the time before the stop at which one particle had half
    of the weight."""
    argv = [
        "+experiment=stochastic_volatility",
        "dataset.n_steps=40",
        "replicates=2",
        "inference.particles=2",
        "record_every=1",
        "eval_every=20",
        "checkpoint_every=10",
    ]

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
    (actual,) = [
        check
        for check in checks[0]["0"]
        if check["check"] == "no particle carries half of the weight"
    ]
    assert actual["passed"] is False
    assert "of 40 recorded times, first t = 1" in actual["detail"]


def test_recording_checks_changes_no_score(make_job):
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
    passed = {check["check"]: check["passed"] for check in checks}
    assert passed[FINITE] is True
    assert passed["bulk ESS is above 100 per chain"] is False  # among 20 draws
    assert not any("check" in name for name in result)


def test_unbiased_gradients_must_share_their_mean():
    measurements = Measured(
        ["reparam", "vargrad", "gumbel_softmax"], [True, True, False], [0, 10], [], Findings(), None
    )
    p = {f"bias_p/{label}/{t}": 0.3 for label in measurements.labels for t in measurements.at}
    assert measurements.check_bias(p).passed is True
    # declared by the method
    assert measurements.check_bias(p | {"bias_p/gumbel_softmax/10": 1e-9}).passed is True
    wrong = measurements.check_bias(p | {"bias_p/vargrad/10": [0.5, 1e-5]})
    assert wrong.passed is False
    assert wrong.detail == "smallest p 3e-05, corrected for 3: vargrad after 10 steps"
    # three p-values were computed
    assert measurements.check_bias(p | {"bias_p/vargrad/10": [0.5, 4e-4]}).passed is True
    assert measurements.check_bias({}).passed is None
    assert replace(measurements, unbiased=[False, True, False]).check_bias(p).passed is None


def finished_run(state=None, trace=()):
    problem = SimpleNamespace(batches=lambda batch_kind, rng, start, stop: iter([(stop, None)]))
    return FinishedRun(problem, None, None, state, {}, trace, Streams(0))


def discriminator(losses):
    trace = [(t, {"discriminator_loss": loss}) for t, loss in enumerate(losses)]
    (check,) = component("inference", "avb").checks(finished_run(trace=trace))
    return check


@pytest.mark.parametrize(
    ("last", "passed"), [(1.3, True), (0.06, True), (0.04, False), (0.0, False)]
)
def test_saturated_discriminator_is_reported(last, passed):
    check = discriminator([1.386] * 90 + [last] * 10)
    assert check.passed is passed
    assert f"loss {last:.3g} over the last tenth, chance is 1.39" in check.detail
    assert ("discriminator=none" in check.detail) is not passed
    beside = discriminator([[1.386, last, 1.2]] * 100)  # one failure is enough
    assert beside.passed is passed
    assert "the smallest of 3 replicates" in beside.detail


@pytest.mark.parametrize(("proposal", "passed"), [("gaussian", False), ("student_t", True)])
def test_light_tailed_proposal_fails(proposal, passed):
    method = component("inference", "importance_sampling", proposal=proposal)
    state = method.init(Tailed(1, 5.0), None, Streams(0))
    for _ in range(100):
        state, _ = method.step(state, None, Streams(0))
    (check,) = method.checks(finished_run(state))
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
        network=torch.nn.ParameterDict(),
        optimizer=None,
        shown=[],
        mean=zeros,
        square=zeros,
        deviations=zeros.new_zeros(0, 2),
    )
    for theta in double(points):
        state = replace(method.collect(state, theta), n=state.n + 1)
    (check,) = method.checks(finished_run(state))
    assert check.passed is passed
