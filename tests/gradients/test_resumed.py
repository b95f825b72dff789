"""The learned state of a gradient: a stopped run resumes with it, bit for bit."""

import pytest
from support.runs.configured import component, compose_component
from support.small.small_bernoulli import binary_rows
from support.small.small_problems import check_resumed, real
from support.small.unlabelled_problems import real_rows

VI = compose_component("inference", "vi", n_samples=2)
POSTERIOR = compose_component("inference", "gaussian_vi", noise="rows", draws=4)
PROBLEMS = {
    "vae": (component("model", "vae", latent_dim=2, widths=[3]), real_rows(n=20, batch_size=6)),
    "dvae": (component("model", "dvae", units=3), binary_rows(n=6)),
    "linear_regression": (
        component("model", "linear_regression", noise=0.25),
        real(n_tasks=1, missing=0.0, batch_size=6),
    ),
}
CONTROLLED = [
    {"name": "amortised_cv", "order": 2, "objective": "partial_gradients", "widths": [4]},
    {"name": "amortised_cv", "objective": "gradient_sum", "widths": [4]},
    {"name": "context_free_cv", "solver": "adam"},
    {"name": "context_free_cv", "solver": "moving_average"},
    {"name": "quadratic_cv"},
]
LEARNING = {
    "vae": [
        *CONTROLLED,
        {"name": "nvil"},
        {"name": "reinforce_cv", "coefficient": "running"},
        {"name": "vargrad_reference", "refresh": 3},
    ],
    "dvae": [
        {"name": "rebar", "lr": 0.05},
        {"name": "relax", "lr": 0.05, "widths": [5]},
        {"name": "relax_rebar", "lr": 0.05, "widths": [5]},
        {"name": "double_cv", "lr": 0.05},
        {"name": "rodeo", "lr": 0.05, "widths": [5]},
    ],
    "linear_regression": [
        *CONTROLLED,
        {"name": "joint_cv"},
        {"name": "svrg"},
        {"name": "sarah"},
        {"name": "combined_cv", "members": ["sticking_the_landing", "taylor_cv"]},
    ],
}


@pytest.mark.parametrize(("model", "keys"), [(m, keys) for m in LEARNING for keys in LEARNING[m]])
def test_resumed_run_is_bit_identical(model, keys, tmp_path):
    method = POSTERIOR if model == "linear_regression" else VI
    gradient = compose_component("gradient", n_samples=method.gradient.n_samples, **keys)
    check_resumed(method.model_copy(update={"gradient": gradient}), *PROBLEMS[model], tmp_path)
