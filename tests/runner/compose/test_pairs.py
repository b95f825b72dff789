"""Requirements of inference methods are checked against configured models before data are read."""

import pytest
import torch
from support.runs.checked_pairs import check_pairs
from support.small.small_problems import component, real, train
from torch import nn

from components import registry
from components.contracts.attackers import Contamination
from components.contracts.capabilities import CAPABILITIES
from components.contracts.plugins.protocols import missing
from components.contracts.predictive import GaussianMixture
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.problems.supervised import Supervised
from runner.errors import ConfigError


class BareModule(nn.Module):
    """N(θ, 1) for every label: a variational model that only offers ``Elbo``."""

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

    def build(self, problem, rng) -> BareModule:
        return BareModule(problem)


BARE = Bare(name="bare")
TOY = component("dataset", "multitask_toy")


def test_bound_suffices_for_dsvi_unless_keys_require_more():
    dsvi = component("inference", "dsvi", noise_warmup=0, natural_layers="none")
    check_pairs(TOY, BARE, dsvi, None)
    problem = real()
    state, rng = train(dsvi, BARE, problem, 20)
    assert not missing(state.module, BARE.capabilities())
    assert "rmse" in problem.score(dsvi.posterior(state), rng)
    with pytest.raises(
        ConfigError,
        match=r"^inference.noise_warmup=5 requires noise_parameters, which model=bare lacks",
    ):
        check_pairs(
            TOY, BARE, component("inference", "dsvi", noise_warmup=5, natural_layers="none"), None
        )
    both = r"^inference=dsvi with inference.natural_layers=all and inference.noise_warmup=5 requires noise_parameters,"
    with pytest.raises(ConfigError, match=both):
        check_pairs(
            TOY, BARE, component("inference", "dsvi", noise_warmup=5, natural_layers="all"), None
        )


def test_bound_suffices_for_lbfgs_without_restarts():
    check_pairs(TOY, BARE, component("inference", "lbfgs", restarts=1), None)
    with pytest.raises(
        ConfigError, match=r"^inference.restarts=3 requires hyperparameters, which model=bare lacks"
    ):
        check_pairs(TOY, BARE, component("inference", "lbfgs", restarts=3), None)


FITTING = """
+experiment=sarcos_mdgp inference.natural_layers=top model=smdgp
+experiment=sarcos_mdgp inference.natural_layers=top model=igp model.posterior=sparse
+experiment=sarcos_mdgp inference.natural_layers=top model=cgp model.posterior=sparse
dataset=digits model=mlp model.dropout=0.1 inference=mc_dropout steps=5
dataset=digits model=cnn inference=mean_field_vi inference.estimator=weights steps=5
dataset=local_level model=linear_gaussian_ssm inference=kalman attacker=spoofing
dataset=wiener_velocity model=contaminated_ssm inference=bootstrap_filter
dataset=wiener_velocity model=contaminated_ssm inference=bootstrap_filter attacker=gaussian_contamination
"""  # incompatible variants are in mistakes/methods.txt


@pytest.mark.parametrize("words", FITTING.strip().splitlines())
def test_components_that_fit_are_accepted(make_job, words):
    make_job(*words.split())


def test_conditional_capabilities_are_not_unconditional():
    for name in registry.names("model"):
        cls = registry.get("model", name)
        assert cls.offers_where.keys() <= CAPABILITIES, name
        assert not cls.offers_where.keys() & cls.offers, name


class Corrupts(Contamination):
    """An attacker with an unknown corruption distribution."""

    def corrupt(self, observations, rng):
        return 2 * observations


def test_oracle_requires_an_attacker_of_known_law():
    filtered = (
        component("dataset", "wiener_velocity"),
        component("model", "contaminated_ssm"),
        component("inference", "bootstrap_filter"),
    )
    with pytest.raises(ConfigError) as error:
        check_pairs(*filtered, Corrupts(name="doubled"))
    assert str(error.value) == (
        "model=contaminated_ssm requires an attacker with noise_law, which attacker=doubled lacks"
    )
