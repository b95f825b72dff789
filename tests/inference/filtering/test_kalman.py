import torch
from support.runs.configured import component, load
from support.series.small_sequences import run
from support.targets.known_targets import z_score
from torch.testing import assert_close


def test_errors_on_clean_data_have_the_variance_the_filter_says():
    kalman, model = component("inference", "kalman"), component("model", "linear_gaussian_ssm")
    squares, covered = [], []
    for seed in range(150):
        # The simulator starts at x_0 itself, so only a prior that says so is calibrated.
        problem, rng = load("wiener_velocity", seed, n_steps=15, prior_sd=1e-3)
        got = run(kalman, model.build(problem, rng), problem, rng)
        error = got.mean[0, -1] - problem.states[0, -1]
        squares.append(error.square() / got.variance[0, -1])
        covered.append(
            ((got.lower <= problem.states) & (problem.states <= got.upper)).double().mean()
        )
    assert z_score(torch.stack(squares), 1.0).abs().max() < 4
    assert abs(z_score(torch.stack(covered), 0.9)) < 4


def test_scores_are_the_literal_formulas():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=40)
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    got = run(component("inference", "kalman"), model, problem, rng)
    scores = problem.score(got, rng)
    x = problem.states  # [1, 40, 4]
    # eqs. (D.6), (D.7), (D.8)
    nmse = (x - got.mean).square().sum(1) / x.square().sum(1)
    inside = (got.lower <= x) & (x <= got.upper)
    absolute = (got.predicted - problem.observations).abs()
    literal = {
        "nmse": nmse.mean(1),
        "nmse_median": nmse.quantile(0.5, dim=1),
        "nmse/velocity 2": nmse[:, 3],
        "coverage90": inside.double().mean((1, 2)),
        "medae": absolute.quantile(0.5, dim=1).mean(1),
    }
    for name, value in literal.items():
        assert_close(scores[name], value, rtol=1e-10, atol=0, msg=name)
