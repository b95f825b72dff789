"""What inference asks of a model is checked as both are configured, before any data are read."""

from __future__ import annotations

import pytest
import torch
from support.runs.offered_pairs import check_pairs
from support.small.small_problems import component, real, train
from torch import nn

from components.contracts.attackers import Contamination
from components.contracts.capabilities import CAPABILITIES, missing
from components.contracts.predictive import GaussianMixture
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.problems.supervised import Supervised
from runner.errors import ConfigError


class BareModule(nn.Module):
    """N(θ, 1) for every label: a variational model that offers ``elbo`` and no more."""

    def __init__(self, problem):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(problem.n_tasks, dtype=problem.train.x.dtype))

    def draw_noise(self, batch, n_samples, generator):
        return torch.randn(n_samples, generator=generator)

    def elbo(self, batch, noise):
        residual = torch.where(batch.mask, batch.y, 0.0) - self.theta
        value = -0.5 * batch.scale * (residual.square() * batch.mask).sum()
        return {"elbo": value, "log_likelihood": value, "kl": torch.zeros_like(value)}

    def sample_predictive(self, x, n, generator):
        mu = self.theta.expand(n, len(x), -1)
        return GaussianMixture(mu, torch.ones_like(mu))


class Bare(Model[Supervised, BareModule]):
    requires = Requirements(kinds=frozenset({"supervised"}))
    offers = frozenset({"elbo"})

    def build(self, problem, rng):
        return BareModule(problem)


BARE = Bare(name="bare")
TOY = component("dataset", "multitask_toy")


def test_a_bound_alone_is_enough_for_dsvi_unless_keys_ask_for_more():
    dsvi = component("inference", "dsvi", noise_warmup=0, natural_layers="none")
    check_pairs(TOY, BARE, dsvi, None)
    problem = real()
    state, rng = train(dsvi, BARE, problem, 20)
    assert not missing(state.module, BARE.capabilities())
    assert "rmse" in problem.score(dsvi.posterior(state), rng)
    with pytest.raises(
        ConfigError,
        match=r"^inference.noise_warmup=5 needs noise_parameters, which model=bare lacks; ",
    ) as error:
        check_pairs(
            TOY, BARE, component("inference", "dsvi", noise_warmup=5, natural_layers="none"), None
        )
    assert "smdgp" in str(error.value)
    assert "\n" not in str(error.value)
    both = r"^inference.natural_layers=all and inference.noise_warmup=5 need noise_parameters, variational_layers,"
    with pytest.raises(ConfigError, match=both):
        check_pairs(
            TOY, BARE, component("inference", "dsvi", noise_warmup=5, natural_layers="all"), None
        )


def test_a_bound_alone_is_enough_for_lbfgs_unless_it_restarts():
    check_pairs(TOY, BARE, component("inference", "lbfgs", restarts=1), None)
    with pytest.raises(
        ConfigError, match=r"^inference.restarts=3 needs hyperparameters, which model=bare lacks; "
    ):
        check_pairs(TOY, BARE, component("inference", "lbfgs", restarts=3), None)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            [],
            r"natural_layers=top needs variational_layers, which model=collapsed_mdgp lacks; models that can: .*\bsmdgp\b",
        ),
        (
            ["model=igp"],
            r"which model=igp lacks as configured; set model.posterior=sparse .*: cgp \(posterior=sparse .*, cm",
        ),
        (
            ["model=cgp"],
            r"which model=cgp lacks as configured; set model.posterior=sparse .*, igp \(posterior=sparse .*\)",
        ),
    ],
)
def test_natural_gradients_need_a_gaussian_over_inducing_values(make_job, overrides, message):
    with pytest.raises(ConfigError, match=message) as error:
        make_job(
            "+experiment=sarcos_mdgp", "smoke=true", "inference.natural_layers=top", *overrides
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", ["smdgp", "igp", "cgp"])
def test_natural_gradients_where_there_is_one(make_job, model):
    sparse = ["model.posterior=sparse"] if model != "smdgp" else []
    job = make_job(
        "+experiment=sarcos_mdgp", "inference.natural_layers=top", f"model={model}", *sparse
    )
    assert "variational_layers" in job.model.capabilities()


def test_dropout_is_needed_and_not_had_where_it_is_0():
    digits, dropout = component("dataset", "digits"), component("inference", "mc_dropout")
    check_pairs(digits, component("model", "mlp", dropout=0.1), dropout, None)
    with pytest.raises(
        ConfigError,
        match=r"needs dropout, which model=mlp lacks as configured; set model.dropout above 0; ",
    ):
        check_pairs(digits, component("model", "mlp", dropout=0.0), dropout, None)
    with pytest.raises(
        ConfigError, match=r"needs dropout, which model=mbnn2 lacks; inference that fits"
    ):
        check_pairs(digits, component("model", "mbnn2"), dropout, None)


def test_noise_on_layers_outputs_needs_layers_that_share_no_weights():
    digits, cnn = component("dataset", "digits"), component("model", "cnn")
    check_pairs(digits, cnn, component("inference", "mean_field_vi", estimator="weights"), None)
    with pytest.raises(
        ConfigError,
        match=r"^inference.estimator=local needs affine_layers, which model=cnn lacks; models",
    ):
        check_pairs(digits, cnn, component("inference", "mean_field_vi", estimator="local"), None)


def test_what_configurations_bring_are_capabilities_that_the_others_lack():
    from components import registry

    for name in registry.names("model"):
        cls = registry.get("model", name)
        assert cls.offers_where.keys() <= CAPABILITIES.keys(), name
        assert not cls.offers_where.keys() & cls.offers, name


class Corrupts(Contamination):
    """An attacker of whom nobody knows by what law he corrupts."""

    def corrupt(self, observations, rng):
        return 2 * observations


def test_an_oracle_needs_an_attacker_whose_law_is_known():
    filtered = (
        component("dataset", "wiener_velocity"),
        component("model", "contaminated_ssm"),
        component("inference", "bootstrap_filter"),
    )
    check_pairs(*filtered, None)
    check_pairs(*filtered, component("attacker", "gaussian_contamination"))
    with pytest.raises(ConfigError) as error:
        check_pairs(*filtered, Corrupts(name="doubled"))
    assert str(error.value) == (
        "model=contaminated_ssm needs noise_law of whoever attacks, which attacker=doubled lacks; attackers that have it: "
        "gaussian_contamination, missing"
    )


def test_who_spoofs_observations_needs_a_filter():
    dataset, spoofing = component("dataset", "local_level"), component("attacker", "spoofing")
    check_pairs(
        dataset,
        component("model", "linear_gaussian_ssm"),
        component("inference", "kalman"),
        spoofing,
    )
    with pytest.raises(
        ConfigError,
        match=r"^attacker=spoofing leads a filter astray, which inference=series_gibbs is not",
    ):
        check_pairs(
            dataset,
            component("model", "local_level"),
            component("inference", "series_gibbs"),
            spoofing,
        )


def test_images_and_texts_are_refused_by_what_cannot_read_them_before_any_data_are_read():
    """One line, with models that can: networks for images on tokens, those for tokens on pixels,
    attacks on either."""
    fit, descent = component("inference", "fit"), component("inference", "map")
    reviews, pixels = (
        component("dataset", "reviews", simulated=True),
        component("dataset", "cifar10", simulated=True),
    )
    # by descent; roberta and state_dict wait for files of the user
    readers = "lstm, text_transformer"
    for model in ("vgg", "cnn", "mlp", "logistic_regression", "gp_classifier"):
        wanted = rf"model={model} reads inputs that are binary or continuous, those of .*reviews are tokens.*fit: {readers}"
        with pytest.raises(ConfigError, match=wanted):
            check_pairs(reviews, component("model", model), descent, None)
    for model, inference in (
        ("lstm", descent),
        ("text_transformer", descent),
        ("tfidf_logistic", fit),
    ):
        wanted = (
            rf"model={model} reads inputs that are tokens, those of dataset=cifar10 are continuous; models that fit: .*"
            "(vgg|irf)"
        )
        with pytest.raises(ConfigError, match=wanted) as no:
            check_pairs(pixels, component("model", model), inference, None)
        assert "\n" not in str(no.value)
    transformer = component("model", "text_transformer")
    with pytest.raises(
        ConfigError, match=r"attacker=fgsm follows a gradient, and model=text_transformer has none"
    ):
        check_pairs(reviews, transformer, descent, component("attacker", "fgsm"))
    with pytest.raises(
        ConfigError,
        match=r"attacks binary inputs, those of dataset=reviews are tokens; leave attacker=word_flip out",
    ):
        check_pairs(reviews, transformer, descent, component("attacker", "word_flip"))
    with pytest.raises(
        ConfigError, match=r"inference=sgld needs log_joint.*which model=text_transformer lacks"
    ):
        check_pairs(reviews, transformer, component("inference", "sgld"), None)
    with pytest.raises(
        ConfigError, match=r"inference=mc_dropout needs dropout, which model=vgg lacks"
    ):
        check_pairs(pixels, component("model", "vgg"), component("inference", "mc_dropout"), None)
