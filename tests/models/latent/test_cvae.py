"""The conditional auto-encoder: p(x|y) compared with quadrature, the bound with a literal sum, and
classes with Bayes' rule."""

import pytest
import torch
from support.runs.configured import build_model, load
from support.small.class_rows import C, N, build_cvae, integrate_evidence, problem
from support.small.small_problems import classes
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.models.latent.cvae import class_evidence
from runner.execution.rng import Streams


@pytest.mark.parametrize("proposal", ["guide", "laplace"])
def test_importance_samples_recover_the_evidence_of_each_class(proposal):
    module = build_cvae()
    exact = integrate_evidence(module)
    with torch.no_grad():
        evidence = class_evidence(module, problem().train.x, C, 4_000, Streams(0).noise, proposal)
    assert_close(evidence, exact, rtol=0, atol=0.1)
    assert (exact.max(1).values - exact.min(1).values).min() > 0.05, "classes differ"


@pytest.mark.parametrize("samples", [1, 3])
def test_few_samples_are_unbiased(samples):
    module = build_cvae()
    rng = Streams(0)
    exact = integrate_evidence(module)
    with torch.no_grad():
        runs = [
            class_evidence(module, problem().train.x, C, samples, rng.noise) for _ in range(600)
        ]
    ratio = (torch.stack(runs) - exact).exp().mean((1, 2))
    assert abs(float((ratio.mean() - 1) / (ratio.std() / len(ratio) ** 0.5))) < 4


def test_predictions_follow_bayes_rule():
    module = build_cvae()
    x = problem().train.x
    shares = (torch.bincount(problem().train.y[:, 0], minlength=C) + 1).double() / (N + C)
    with torch.no_grad():
        probs = module.sample_predictive(x, 4_000, Streams(0).noise).probs[:, 0]
    joint = integrate_evidence(module).exp() * shares
    assert_close(probs, joint / joint.sum(1, keepdim=True), rtol=0, atol=0.05)


def test_bound_equals_a_literal_sum():
    module = build_cvae(2)
    batch = problem().train
    noise = module.draw_noise(batch, 5, Streams(3).noise)
    bound = module.elbo(batch, noise)
    y = torch.nn.functional.one_hot(batch.y[:, 0], C).double()
    both = torch.cat([batch.x, y], 1)
    m, s = module.guide(both)
    assert_close(s.square(), (1 + module.guide.second(both).exp()).log())
    z = m + s * noise
    logits = module.generative.network(torch.cat([z, y.expand(5, -1, -1)], -1))
    likelihood = Bernoulli(logits=logits).log_prob(batch.x).sum(-1)
    normal = Normal
    divergence = kl_divergence(normal(m, s), normal(torch.zeros(2).double(), 1.0)).sum(-1)
    shares = (torch.bincount(batch.y[:, 0], minlength=C) + 1).double() / (N + C)
    expected = (likelihood.mean(0) - divergence + shares[batch.y[:, 0]].log()).sum()
    assert_close(bound["elbo"], expected)
    assert float(bound["kl"]) == 0


def test_values_that_are_not_binary_are_refused():
    with pytest.raises(
        ConfigMismatchError, match=r"one label and inputs 0 or 1; set dataset.binarised=threshold"
    ):
        build_model("cvae", classes())


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_labelled_images_can_be_thresholded(name):
    kept, cut = (
        load(name, offline="always", n_train=50, n_test=20, binarised=mode)[0]
        for mode in ("none", "threshold")
    )
    assert torch.equal(cut.train.x, (kept.train.x > 0.5).double())
    assert torch.equal(cut.test.x, (kept.test.x > 0.5).double())
    assert torch.equal(cut.train.y, kept.train.y)
    assert (kept.name, cut.name, cut.domain) == (
        "digits-enlarged",
        "digits-enlarged-threshold",
        "binary",
    )
