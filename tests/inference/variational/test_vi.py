"""Variational inference of a model with its guide: it reaches a maximum that is known, and holds
its gradient as a part."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
import torch
from support.runs.configured import component, defaults
from support.small.unlabelled_problems import log_evidence, real_rows

from components.contracts.problems import Kind, Values
from components.contracts.requirements import Requirements
from components.contracts.roles import Dataset, Model
from runner.catalogue.class_description import nested_roles
from runner.catalogue.list_and_show import main as show
from runner.catalogue.listing import main as list_names
from runner.compose.build import build_component, nested_components
from runner.compose.config import prepare
from runner.compose.fit.pairs import check_pairs
from runner.compose.parts import expand_component
from runner.errors import ConfigError
from runner.execution.rng import Streams

VAE_DIGITS = ["+experiment=vae_digits", "smoke=true"]


def vi(**changes):
    """The inference with its parts built, as the runner builds it."""
    full = expand_component("inference", defaults("inference", "vi") | changes, "inference")
    return build_component("inference", full, "inference")


def trained(inference, problem, model, steps):
    rng = Streams(0)
    state = inference.init(model.build(problem, rng), problem, rng)
    for _, batch in problem.batches(inference.requires.batch_kind, rng, 0, steps):
        state, info = inference.step(state, batch, rng)
    return state, info


@pytest.mark.parametrize(("optimizer", "lr"), [("adam", 0.01), ("sgd", 0.002)])
def test_an_affine_model_reaches_the_maximum_likelihood_of_probabilistic_pca(optimizer, lr):
    """Tipping and Bishop (1999), eqs. (7), (8): σ² is the mean of the eigenvalues left out, W those
    kept less σ²."""
    problem = real_rows(n=80)
    x = problem.train.x
    values = torch.linalg.eigvalsh(torch.cov(x.T, correction=0)).flip(0)
    left = values[2:].mean()
    # mean log-likelihood
    best = -0.5 * float(4 * math.log(2 * math.pi) + values[:2].log().sum() + 2 * left.log() + 4)
    inference = vi(optimizer=optimizer, lr=lr, n_samples=4)
    state, info = trained(
        inference, problem, component("model", "vae", latent_dim=2, widths=[]), 1500
    )
    assert set(info) == {"elbo", "grad_norm"}
    assert float(log_evidence(state.module, x).mean()) == pytest.approx(best, abs=0.01)
    problem.test = problem.train
    scores = problem.score(inference.posterior(state), Streams(0))
    assert -scores["nelbo"] == pytest.approx(best, abs=0.05)
    assert scores["nll_bound"] <= scores["nelbo"]


# ---- the gradient as a part of the inference
# ------------------------------------------------------------------------
def test_the_gradient_is_a_part_with_the_samples_of_the_whole(make_job):
    made = make_job(*VAE_DIGITS, "inference.n_samples=3")
    assert nested_roles(type(made.inference)) == {"gradient": "gradient"}
    assert made.config["inference"]["gradient"] == {"name": "reparam", "n_samples": 3}
    assert [path for path, _ in nested_components(made.inference, "inference")] == [
        "inference.gradient"
    ]
    own = make_job(
        *VAE_DIGITS, "inference.n_samples=3", "inference.gradient={name: reparam, n_samples: 2}"
    )
    assert (own.inference.n_samples, own.inference.gradient.n_samples) == (3, 2)
    assert own.signature != made.signature
    assert "pathwise" in made.inference.required_capabilities("unlabelled")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "inference.gradient=reparm",
            "inference.gradient=reparm: no such gradient, did you mean reparam?",
        ),
        ("inference.gradient={name: reparam, sample: 2}", "inference.gradient.sample: unknown key"),
        (
            "inference.gradient={name: reparam, n_samples: 0}",
            "inference.gradient.n_samples=0: out of range, must be > 0",
        ),
        (
            "dataset.binarised=treshold",
            "dataset.binarised=treshold: not one of static | dynamic | threshold | none, did you mean threshold?",
        ),
        ("dataset.n_test=1700", "n_train: 97 of the 1797 digits are not held out"),
        (
            "inference=sgld",
            "has no use for an unlabelled problem; inference that fits model=vae: fixed, hmc_dlgm, "
            "iwae, sivi, uivi, vcd_dlgm, vi, vis",
        ),
        ("attacker=fgsm", "attacker=fgsm cannot attack an unlabelled problem"),
    ],
)
def test_mistakes_are_named(override, message, make_job):
    with pytest.raises(ConfigError, match=r".*") as caught:
        make_job(*VAE_DIGITS, override)
    assert message in str(caught.value)


class OfCounts(Dataset):
    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values | None] = "count"


class WithoutNoise(Model):
    requires = Requirements(kinds=frozenset({"unlabelled"}))
    offers: ClassVar[frozenset[str]] = frozenset({"log_ratio"})


def test_pairs_that_do_not_fit_are_refused_with_the_names_that_do():
    images, vae = component("dataset", "images"), component("model", "vae")
    with pytest.raises(
        ConfigError, match="model=vae has no likelihood for the count values of dataset=counts"
    ):
        check_pairs(OfCounts(name="counts"), vae, vi(), None)
    with pytest.raises(
        ConfigError, match=r"inference.gradient=reparam needs pathwise, which model=dull lacks"
    ):
        check_pairs(images, WithoutNoise(name="dull"), vi(), None)
    check_pairs(images, vae, vi(), None)


def test_the_catalogue_knows_the_role(capsys):
    assert list_names(["list", "gradient"]) == 0
    assert "reparam" in capsys.readouterr().out
    assert show(["show", "gradient/reparam"]) == 0
    shown = capsys.readouterr().out
    assert "needs pathwise" in shown
    assert "gradient.n_samples" in shown
    assert show(["show", "inference/vi"]) == 0
    shown = capsys.readouterr().out
    assert "name of a gradient" in shown
    assert "vae" in shown


def test_a_record_is_read_back_as_the_same_run(make_job):
    from omegaconf import OmegaConf

    made = make_job(*VAE_DIGITS)
    again = prepare(OmegaConf.create(made.config), made.settings.experiment)
    assert (again.signature, again.inference) == (made.signature, made.inference)
