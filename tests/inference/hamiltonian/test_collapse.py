"""Trajectories of the parameters that are not integrated out, with draws of the others, give the
same posterior."""

import pytest
import torch
from support.small.small_problems import component, real, train

from runner.errors import ConfigError

NETWORK = {
    "widths": [3],
    "activation": "tanh",
    "prior_std": 0.8,
    "noise_init": 0.05,
    "noise_spread": 0.5,
}
SETTINGS = {
    "hmc": {
        "trajectory": "jittered",
        "length": 1.2,
        "mass": "identity",
        "step_size": 0.02,
        "max_steps": 40,
    },
    "nuts": {"mass": "identity", "step_size": 0.02, "max_depth": 5},
}


def draw_posterior(name, collapse, seed=0):
    """Draws [C, N, P] of a network's posterior on twelve rows."""
    problem = real(n=12, n_inputs=1, n_tasks=1, missing=0.0)
    sampler = component(
        "inference", name, chains=60, warmup=100, collapse=collapse, **SETTINGS[name]
    )
    state, _ = train(sampler, component("model", "mlp", **NETWORK), problem, 260, seed)
    return problem, state, sampler.posterior(state)


def summarise_draws(problem, draws):
    """Means over the draws of each chain [C, Q]: f and f² at test inputs, log σ² and its square,
    |w|² of the last layer."""
    f = draws.predictive(draws.flat, problem.test.x[:4]).mu[..., 0]
    noise = draws.flat[:, -1:]
    w = draws.flat[:, 6:10]
    asked = torch.cat(
        [f, f**2, noise, noise**2, (w**2).sum(1, keepdim=True), (w**4).sum(1, keepdim=True)], 1
    )
    return asked.unflatten(0, draws.draws.shape[:2]).mean(1)


def largest_z(problem, draws, others):
    """Largest |z| of the differences of means between two sets of chains; each chain is a
    replicate."""
    a = summarise_draws(problem, draws)
    b = summarise_draws(problem, others)
    error = (a.var(0) / len(a) + b.var(0) / len(b)).sqrt()
    return float(((a.mean(0) - b.mean(0)) / error).abs().max())


@pytest.fixture(scope="module")
def plain():
    return draw_posterior("hmc", "none")


@pytest.mark.parametrize("name", ["hmc", pytest.param("nuts", marks=pytest.mark.slow)])
def test_means_match_plain_sampler(name, plain):
    problem, _, others = plain
    _, state, draws = draw_posterior(name, "last_layer", seed=1)
    assert draws.draws.shape[2] == others.draws.shape[2] == 11
    assert state.gradient.shape[1] == 7  # trajectories do not change w [4]
    assert largest_z(problem, draws, others) < 4


def test_last_layer_fixed_at_mean_is_detected(plain, monkeypatch):
    from components.models.networks import last_layer_out as module

    problem, _, others = plain

    def at_its_mean(self, rest, batch, generator):
        fit = self._regression(self.network.features(rest[:, : self.below], batch.x), rest, batch)
        return torch.cat([rest[:, : self.below], fit.mean.to(rest), rest[:, self.below :]], 1)

    monkeypatch.setattr(module.LastLayerMarginal, "complete", at_its_mean)
    assert largest_z(problem, draw_posterior("hmc", "last_layer", seed=1)[2], others) > 6


@pytest.mark.slow  # takes 6 s
def test_missing_determinant_is_detected(plain, monkeypatch):
    from components.models.networks import last_layer_out as module

    problem, _, others = plain

    def of_squares_alone(self, fit, batch):
        square = fit.residual.square().sum(1) / fit.variance + (fit.mean / self.scale).square().sum(
            1
        )
        return -0.5 * (square + len(batch.y) * fit.variance.log())

    monkeypatch.setattr(module.LastLayerMarginal, "_evidence", of_squares_alone)
    assert largest_z(problem, draw_posterior("hmc", "last_layer", seed=1)[2], others) > 6


def test_unsupported_model_is_refused(make_job):
    for model in ("bnn", "linear_regression"):
        with pytest.raises(
            ConfigError,
            match=r"inference\.collapse=last_layer requires collapsible",
        ):
            make_job(
                "dataset=uci_regression",
                f"model={model}",
                "inference=hmc",
                "inference.collapse=last_layer",
            )
