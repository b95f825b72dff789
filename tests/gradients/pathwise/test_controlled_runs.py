"""Control variates as parts of runs: killed and resumed, on q(θ) of a log joint, and refused where
they do not fit."""

import pytest
import torch
from omegaconf import OmegaConf
from support.runs.configured import component
from support.small.small_problems import real, resumed, tensors, train
from support.small.unlabelled_problems import real_rows
from torch.testing import assert_close

from runner import CONF
from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.errors import ConfigError

VAE = component("model", "vae", latent_dim=2, widths=[3])
LINEAR = component("model", "linear_regression", noise=0.25)
LEARNING = [
    {"name": "amortised_cv", "order": 2, "objective": "partial_gradients", "widths": [4]},
    {"name": "amortised_cv", "objective": "gradient_sum", "widths": [4]},
    {"name": "context_free_cv", "solver": "adam"},
    {"name": "context_free_cv", "solver": "moving_average"},
    {"name": "quadratic_cv"},
]
TABLES = {"name": "joint_cv"}


def inference(name, **changes):
    values = OmegaConf.to_container(OmegaConf.load(CONF / f"inference/{name}.yaml")) | changes
    return build_component(
        "inference", expand_component("inference", values, "inference"), "inference"
    )


@pytest.mark.parametrize("gradient", [*LEARNING, TABLES])
def test_killed_and_resumed_it_goes_on_bit_identically(tmp_path, gradient):
    labels = real(n_tasks=1, missing=0.0, batch_size=6)
    for method, model, problem in (
        (inference("vi", gradient=gradient, n_samples=2), VAE, real_rows(n=20, batch_size=6)),
        (inference("gaussian_vi", gradient=gradient, noise="rows", draws=4), LINEAR, labels),
    ):
        if gradient == TABLES and problem is not labels:
            continue  # there every row has latent variables of its own
        whole, rng = train(method, model, problem, 7)
        again, restored = resumed(method, model, problem, 7, 3, tmp_path / method.name)
        assert_close(tensors(whole), tensors(again), rtol=0, atol=0)
        assert torch.equal(rng.noise.get_state(), restored.noise.get_state())
        once, _ = train(method, model, problem, 3)
        learnt = [
            t
            for t in tensors(whole)
            if not any(t.shape == o.shape and torch.equal(t, o) for o in tensors(once))
        ]
        assert len(learnt) > 4  # what was resumed moves


@pytest.mark.parametrize(
    "gradient", [*LEARNING, {"name": "sticking_the_landing"}, {"name": "taylor_cv"}]
)
def test_a_run_from_the_command_line_has_it(make_job, gradient):
    made = make_job(
        "+experiment=vae_digits",
        "smoke=true",
        f"inference.gradient={gradient['name']}",
        "inference.n_samples=3",
    )
    assert made.inference.gradient.n_samples == 3


def test_models_without_known_noise_are_refused_with_what_fits(make_job):
    with pytest.raises(
        ConfigError,
        match=r"inference.gradient=amortised_cv needs .*normal_noise.*; inference.gradient that would fit: arm, ",
    ):
        make_job(
            "+experiment=vae_digits", "smoke=true", "model=dvae", "inference.gradient=amortised_cv"
        )


def test_control_variates_whose_mean_is_not_known_are_refused_with_what_fits(make_job):
    for name, model, lacking in (
        ("taylor_cv", "dvae", "location_scale, normal_noise"),
        ("quadratic_cv", "dvae", "location_scale, normal_noise"),
        ("joint_cv", "vae", "global_latent"),
    ):
        with pytest.raises(
            ConfigError,
            match=rf"inference.gradient={name} needs {lacking}.*, which model={model} lacks; ",
        ):
            make_job(
                "+experiment=vae_digits",
                "smoke=true",
                f"model={model}",
                f"inference.gradient={name}",
            )


def test_tables_of_a_density_are_refused(make_job):
    made = make_job(
        "dataset=gaussian",
        "model=target_density",
        "inference=gaussian_vi",
        "inference.gradient=joint_cv",
    )
    assert made.inference.gradient.name == "joint_cv"
