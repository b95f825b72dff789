"""Gradients that do not fit what they are given: one line each, which names the key and the
mend."""

import pytest

from runner.errors import ConfigError
from runner.execution.execute import run

DVAE = ["+experiment=dvae_digits", "smoke=true"]
VAE = ["+experiment=vae_digits", "smoke=true"]
DENSITY = ["dataset=gaussian", "model=target_density", "inference=gaussian_vi", "steps=2"]
BINARY = [
    "arm",
    "disarm",
    "arms",
    "rebar",
    "relax",
    "relax_rebar",
    "double_cv",
    "rodeo",
    "gumbel_softmax",
]
REFUSED = [
    *(
        (
            [*VAE, f"inference.gradient={name}", "inference.n_samples=2"],
            f"inference.gradient={name} needs ",
        )
        for name in BINARY
    ),
    (
        [*VAE, "inference.gradient=arm"],
        "needs bernoulli_layers, which model=vae lacks; inference.gradient that would fit: ",
    ),
    (
        [*DVAE, "inference.gradient=reparam"],
        "needs pathwise, which model=dvae lacks; inference.gradient that would fit: arm, ",
    ),
    # no known mean
    ([*DVAE, "inference.gradient=context_free_cv"], "inference.gradient=context_free_cv needs "),
    *(
        (
            [*DVAE, f"inference.gradient={name}", "inference.n_samples=1"],
            "n_samples=1: out of range, must be ≥ 2",
        )
        for name in ("vargrad", "double_cv", "rodeo", "arms", "vimco")
    ),
    # a row compares draws
    *(
        (
            [*VAE, f"inference.gradient={keys}", "inference.n_samples=1"],
            message,
        )
        for keys, message in (
            ("vargrad_reference", "n_samples=1: out of range, must be ≥ 2"),
            (
                "{name: reinforce_cv, coefficient: sampled}",
                "set inference.n_samples to 2 or more",
            ),
        )
    ),
    (
        [*VAE, "inference.gradient={name: reinforce_cv, coefficient: oracle}"],
        "inference.gradient.extra_samples: coefficient=oracle is what draws them, and needs them; "
        "give a number",
    ),
    ([*VAE, "inference.gradient={name: reinforce_cv, extra_samples: 5}"], "leave it null"),
    (
        [*VAE, "inference.gradient={name: reinforce_cv, coefficient: best}"],
        "not one of running | sampled | oracle",
    ),
    ([*VAE, "inference.gradient=vargard"], "no such gradient, did you mean vargrad?"),
    # latent variables of rows, or noise whose law is known
    *(
        (
            [*DENSITY, f"inference.gradient={name}", "inference.n_samples=3"],
            f"inference.gradient={name} needs row_guide",
        )
        for name in ("vimco", "nvil")
    ),
    *(
        (
            [*VAE, f"model={model}", f"inference.gradient={name}"],
            f"inference.gradient={name} needs {lacking}",
        )
        for name, model, lacking in (
            ("amortised_cv", "dvae", "normal_noise"),
            ("taylor_cv", "dvae", "location_scale, normal_noise"),
            ("quadratic_cv", "dvae", "location_scale, normal_noise"),
            ("joint_cv", "vae", "global_latent"),
        )
    ),
    ([*DVAE, "dataset.binarised=none"], "model=dvae needs binary values"),
    ([*DVAE, "model.layers=3"], "model.layers=3"),
    (
        [*DENSITY, "inference.gradient=rodeo", "inference.n_samples=2"],
        "inference.gradient=rodeo needs bernoulli_layers",
    ),
    (
        [*DVAE, "inference.gradient={name: arms, copula: clayton}", "inference.n_samples=2"],
        "not one of dirichlet | gaussian",
    ),
    ([*DVAE, "inference.gradient={name: relax, widths: [0]}"], "inference.gradient.widths"),
    (
        [*DVAE, "inference.gradient={name: rodeo, lr: -1}", "inference.n_samples=2"],
        "inference.gradient.lr=-1: out of range, must be ≥ 0",
    ),
]
WITHOUT_ROWS = [
    (
        "{name: context_free_cv, objective: partial_gradients}",
        "set inference.gradient.objective to gradient_sum",
    ),
    ("{name: amortised_cv, objective: partial_gradients}", "choose gradient=context_free_cv"),
    ("joint_cv", "choose gradient=taylor_cv"),
]


@pytest.mark.parametrize(("overrides", "message"), REFUSED)
def test_before_data_are_read(overrides, message, make_job):
    with pytest.raises(ConfigError) as caught:
        make_job(*overrides)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("gradient", "message"), WITHOUT_ROWS)
def test_where_there_are_no_rows(gradient, message, make_job):
    with pytest.raises(ConfigError) as caught:
        run(make_job(*DENSITY, f"inference.gradient={gradient}"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
