"""Keys of methods that are out of range, and problems and models that a method does not support,
raise errors that name them."""

from functools import partial

import pytest
from support.runs.configured import component, compose_component, load
from support.small.small_problems import classes, real, train

from components.errors import ConfigMismatchError, NumericalError

mlp = partial(component, "model", "mlp")
TARGET = component("model", "target_density")
MOMENTA = "step_size: at 5 friction reverses momenta; use a value below .* = 4"
ADAPTS = {"burn_in": 0, "adapt": "burn_in"}
ALONE = "chains: repulsion needs at least 2 particles"
GREEDY = [[0.0, 1.0], [1.0, 0.0]]
FILTER = partial(component, "inference")

# method, its keys, message
KEYS = [
    *(("bb_alpha", {"alpha": alpha}, "alpha") for alpha in (0.0, -0.5, 1.5)),
    *(("mc_dropout_alpha", {"alpha": alpha}, "alpha") for alpha in (0.0, -0.5, 1.5)),
    ("renyi_vi", {"alpha": -1.0}, "alpha"),
    ("aadm", {"n_samples": 1}, "n_samples"),
    ("aadm", {"alpha": 0.0}, "alpha"),
    ("aadm", {"alpha": 1.5}, "alpha"),
    ("acra", {"utilities": GREEDY}, "correct decisions are better than errors"),
    ("adversarial_training", {"train_eps": -0.1}, "train_eps"),
    ("deep_ensemble", {"members": 0}, "members"),
    ("generalised_filter", {"beta": -0.1}, "beta"),
    ("generalised_filter", {"gamma": -0.1}, "gamma"),
    ("generalised_filter", {"threshold": 0.0}, "threshold"),
    ("beta_auxiliary_filter", {"beta": -0.1}, "beta"),
    (
        "ffbs",
        {"filter": FILTER("kalman")},
        "filter: kalman is not a particle filter; choose bootstrap_filter",
    ),
    (
        "two_filter",
        {"filter": FILTER("student_t_filter")},
        "student_t_filter has weights that the backward pass",
    ),
    ("hmc", {"chains": 1}, "chees requires several chains"),
    ("hmc", {"warmup": 0}, "chees adapts during warm-up"),
    (
        "importance_sampling",
        {"chains": 100, "proposal": "gaussian", "points": "sobol"},
        r"chains: 100 is not a power of two.* 64 or 128",
    ),
    (
        "importance_sampling",
        {"chains": 64, "proposal": "prior", "points": "sobol"},
        "points: sobol requires a q with a known inverse",
    ),
    (
        "ksivi",
        {"n_samples": 1, "pairs": "u_statistic"},
        "n_samples: must be at least 2 for pairs of draws",
    ),
    (
        "ksivi",
        {"n_samples": 3, "pairs": "two_batches"},
        "n_samples: must be at least 2 for pairs of draws",
    ),
    ("map", {"schedule": "cosine"}, "anneal_steps: schedule=cosine requires the number"),
    ("posterior_concentration", {"numbers": [64, 64, 128]}, "must increase"),
    ("ridge_path", {"lowest": 2.0, "highest": 1.0}, "below highest"),
    ("sgld", {"schedule": "polynomial", "decay": 0.5}, "Robbins-Monro"),
    ("sgld", {"schedule": "polynomial", "decay": 1.1}, "Robbins-Monro"),
    ("sgld", {"schedule": "cosine"}, "polynomial"),
    ("sgld", {"cycles": 4}, "extra"),
    ("psgld", ADAPTS, "with burn_in=0 there are no steps"),
    ("adam_noise", ADAPTS, "with burn_in=0 there are no steps"),
    ("sghmc", {"step_size": 0.5, "friction": 3.0}, "friction: step_size × friction"),
    ("recipe", {"step_size": 1.0, "friction": 1.3}, "reverses the momentum"),
    ("sgdm_r", {"chains": 8, "friction": 2.0, "step_size": 5.0}, MOMENTA),
    ("sgld_r", {"chains": 6, "kernel_particles": 4}, "kernel_particles: 4 is not a block size"),
    ("svgd", {"chains": 6, "kernel_particles": 4}, "kernel_particles: 4 is not a block size"),
    *((name, {"chains": 1}, ALONE) for name in ("sgld_r", "sgdm_r", "adam_nr")),
]


@pytest.mark.parametrize(("name", "keys", "message"), KEYS)
def test_keys_out_of_range_are_refused(name, keys, message):
    with pytest.raises(ValueError, match=message) as caught:
        component("inference", name, **keys)
    assert caught.value.error_count() == 1


def density(name, **keys):
    return load(name, **keys)[0]


def attack_problem(attacker):
    problem, rng = load("wiener_velocity", replicates=2, n_steps=8)
    return problem.attack(component("attacker", attacker), rng)


# method, its keys, model, problem, message
MISFITS = [
    ("mc_dropout", {}, mlp(), real(), r"model\.dropout: with 0, MC dropout has no randomness"),
    ("mc_dropout_alpha", {}, mlp(), real(), r"model\.dropout: with 0"),
    (
        "pbp",
        {},
        mlp(widths=[4], activation="tanh"),
        real(n_tasks=1, missing=0.0),
        r"model\.activation=relu",
    ),
    (
        "laplace",
        {"hyperparameters": "trained"},
        mlp(widths=[2600]),
        real(),
        r"inference\.structure=full: needs the covariances of .*use diagonal or last_layer",
    ),
    (
        "alpha_divergence",
        {},
        TARGET,
        density("banana", dim=2),
        "has 2; use dataset=mixture_of_gaussians_1d",
    ),
    (
        "power_ep",
        {},
        component("model", "logistic_regression", prior="laplace"),
        density("binary_simulation", n_train=25, n_test=20, beta=[1.5]),
        r"model\.prior=gaussian",
    ),
    (
        "power_ep",
        {},
        component("model", "logistic_regression", prior="gaussian"),
        classes(),
        "one linear predictor",
    ),
    (
        "oracle",
        {},
        component("model", "asymmetric_wiener"),
        density("asymmetric_wiener", replicates=2, n_steps=8),
        r"inference=oracle: .* require a model with noise N\(0, Σ\)",
    ),
    (
        "oracle",
        {},
        component("model", "linear_gaussian_ssm"),
        attack_problem("sensor_stuck"),
        "attacker=sensor_stuck does not provide its noise distribution",
    ),
    (
        "posterior_concentration",
        {},
        component("model", "matern_regression"),
        real(n_inputs=1, n_tasks=1),
        "use dataset=smooth_function",
    ),
    (
        "function_draws",
        {"given": "rows"},
        component("model", "idgp", n_inducing=4),
        real(n_tasks=1),
        r"inference.given=rows",
    ),
    (
        "importance_sampling",
        {"proposal": "prior"},
        TARGET,
        density("mixture_of_gaussians_2d"),
        r"inference\.proposal: a density has no prior",
    ),
    (
        "statistical_risk",
        {},
        component("model", "linear_regression", noise=1.0, intercept_scale=None),
        density("linear_simulation", beta=[1.0, 2.0]),
        "at least 3",
    ),
    (
        "bbvi",
        {"family": "flow", "gradient": "reparam"},
        TARGET,
        density("gaussian", dim=1),
        "couplings require at least two",
    ),
    ("vis", {"q0": "prior"}, TARGET, density("gaussian"), r"inference\.q0=prior"),
    *(
        (
            name,
            {"gradient": gradient},
            TARGET,
            density("mixture_of_gaussians_2d"),
            rf"inference\.gradient={gradient}: a density",
        )
        for name in ("sgld", "sghmc", "psgld", "sgd_momentum", "adam_noise")
        for gradient in ("control_variate", "svrg")
    ),
    *(
        (
            name,
            {"noise_estimate": True},
            TARGET,
            density("mixture_of_gaussians_2d"),
            r"inference\.noise_estimate: a density",
        )
        for name in ("sghmc", "recipe")
    ),
]


@pytest.mark.parametrize(("name", "keys", "model", "problem", "message"), MISFITS)
def test_incompatible_problems_are_refused(name, keys, model, problem, message):
    with pytest.raises(ConfigMismatchError, match=message):
        train(compose_component("inference", name, **keys), model, problem, 0)


SGD = {"optimizer": "sgd", "lr": 1e200}
LEFT = r"weights became non-finite.*inference\.collect_lr"

# method, its keys, model, problem, number of steps, message
DIVERGING = [
    ("swa", {"burn_in": 6, "every": 3, "lr": 1e200}, mlp(widths=[4]), real(), 9, LEFT),
    ("swag", {"burn_in": 5, "every": 3, "lr": 1e200}, mlp(widths=[4]), real(), 8, LEFT),
    (
        "deep_ensemble",
        SGD,
        mlp(widths=[5]),
        real(),
        5,
        r"members of the ensemble became non-finite.*lower inference\.lr",
    ),
    (
        "gaussian_vi",
        SGD | {"lr": 100.0},
        component("model", "linear_regression"),
        real(n=24, n_tasks=1, missing=0.0),
        200,
        r"lower inference.lr",
    ),
    ("sgld", {"step_size": 5.0}, TARGET, density("gaussian"), 2000, r"lower inference\.step_size"),
]


@pytest.mark.parametrize(("name", "keys", "model", "problem", "steps", "message"), DIVERGING)
def test_diverging_step_is_reported(name, keys, model, problem, steps, message):
    with pytest.raises(NumericalError, match=message):
        train(compose_component("inference", name, **keys), model, problem, steps)
