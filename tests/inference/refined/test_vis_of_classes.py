"""Variationally inferred sampling of latent variables of labelled rows: training as a literal sum,
classes by Bayes' rule."""

import math

import pytest
import torch
from contract.only import restrict
from support.runs.configured import F64, component, compose_component
from support.small.class_rows import C, N, build_cvae, integrate_evidence, problem
from support.small.small_problems import advance
from support.targets.refined_targets import train_refined, vis
from torch.testing import assert_close

from components.contracts.capabilities import ClassConditional, LogJoint, ThetaPredictive
from components.inference.refined.by_class import ClassPosterior
from runner.execution.rng import Streams

KEYS = {"kernel": "sgd", "entropy": "initial", "refine_steps": 2, "eta": 0.1}


def shares():
    """p(y) [C]."""
    return (torch.bincount(problem().train.y[:, 0], minlength=C) + 1).double() / (N + C)


def train_steps(inference, module, steps):
    """State and last info of an inference after training."""
    return train_refined(inference, module, problem(), steps)[:2]


def test_without_steps_vis_is_conditional_auto_encoder():
    (vi_state, of_vi), (state, info) = (
        train_steps(
            compose_component("inference", name, n_samples=3, lr=0.01, **keys), build_cvae(), 5
        )
        for name, keys in (("vi", {}), ("vis", {"refine_steps": 0}))
    )
    assert {key: info[key] for key in ("elbo", "grad_norm")} == {
        key: of_vi[key] for key in ("elbo", "grad_norm")
    }
    assert all(
        torch.equal(a, b)
        for a, b in zip(vi_state.module.parameters(), state.module.parameters(), strict=True)
    )


def test_refined_objective_matches_literal_sum():
    module = build_cvae(2)
    batch = problem().train
    S = 4
    _, info = train_steps(vis(**KEYS, n_samples=S, lr=1e-30, optimizer="sgd"), module, 1)
    y = torch.nn.functional.one_hot(batch.y[:, 0], C).double()

    def log_joint(z):  # log p(x|z, y) + log p(z) [S, N]
        logits = module.generative.network(torch.cat([z, y.expand(S, -1, -1)], -1))
        normal = torch.distributions.Normal(torch.zeros(2, dtype=F64), 1.0).log_prob(z)
        return torch.distributions.Bernoulli(logits=logits).log_prob(batch.x).sum(-1) + normal.sum(
            -1
        )

    m, s = (value.detach() for value in module.guide(torch.cat([batch.x, y], 1)))
    z = m + s * torch.randn(S, N, 2, generator=Streams(0).noise, dtype=F64)
    for _ in range(2):
        z = z.detach().requires_grad_()
        z = z + 0.1 * torch.autograd.grad(log_joint(z).sum(), z)[0]
    entropy = (0.5 * (2 * math.pi * math.e * s.square()).log()).sum()
    assert_close(info["log_joint"], log_joint(z).mean(0).sum().detach())
    assert_close(info["entropy"], entropy)


@pytest.mark.parametrize("proposal", ["guide", "laplace"])
def test_refinement_keeps_class_evidence(proposal):
    """T changes the proposals, but not the target of their weights."""
    module = build_cvae()
    x = problem().test.x
    joint = integrate_evidence(module).exp() * shares()
    for infer_steps in (0, 3):
        inference = vis(**KEYS, infer_steps=infer_steps, draws=4_000, proposal=proposal)
        state, _ = train_steps(inference, module, 0)
        posterior = inference.posterior(state)
        assert isinstance(posterior, ClassPosterior)
        with torch.no_grad():
            probs = posterior.predict(x, Streams(0).noise).probs[:, 0]
        assert_close(probs, joint / joint.sum(1, keepdim=True), rtol=0, atol=0.05)


def test_attack_follows_evidence_gradient():
    module = build_cvae()
    inference = vis(**KEYS, draws=4_000)
    x = problem().test.x.clone().requires_grad_()
    state, _ = train_steps(inference, module, 0)
    log_probs = inference.posterior(state).predict(x, Streams(0).noise).log_probs[:, 0]  # [N, C]
    (gradient,) = torch.autograd.grad(log_probs[:, 0].sum(), x)
    z = torch.linspace(-9, 9, 2_001, dtype=F64)[:, None, None].expand(-1, N, 1)
    inputs = problem().test.x.clone().requires_grad_()
    evidence = []
    for y in torch.eye(C, dtype=F64):
        logits = module.generative.network(torch.cat([z, y.expand(*z.shape[:2], C)], -1))
        likelihood = (inputs * logits - torch.nn.functional.softplus(logits)).sum(-1)
        evidence.append((likelihood - 0.5 * z[..., 0].square()).logsumexp(0))
    exact = (torch.stack(evidence, -1) + shares().log()).log_softmax(-1)
    (wanted,) = torch.autograd.grad(exact[:, 0].sum(), inputs)
    assert_close(gradient, wanted, rtol=0, atol=0.1)
    assert wanted.abs().max() > 0.5


def test_vis_learns_to_classify():
    model = component("model", "cvae", latent_dim=2, widths=[16])
    inference = vis(refine_steps=2, eta=0.01, lr=0.02, entropy="joint", learn_eta=True, draws=50)
    assert inference.required_capabilities("supervised", model.capabilities()) == {ClassConditional}
    assert inference.required_capabilities("supervised") == {LogJoint, ThetaPredictive}
    of_many = problem(120)
    rng = Streams(0)
    stub = restrict(model.build(of_many, rng), ClassConditional)
    state = inference.init(stub, of_many, rng)
    state, _ = advance(inference, state, of_many, rng, 0, 150)
    assert of_many.score(inference.posterior(state), rng)["accuracy"] > 0.75


def test_prior_q0_ignores_the_encoder():
    inference = vis(**{**KEYS, "q0": "prior"}, n_samples=2, draws=4)
    results = []
    for shift in (0.0, 3.0):
        module = build_cvae(2)
        with torch.no_grad():
            for p in module.guide.parameters():
                p.add_(shift)
        state, _ = train_steps(inference, module, 1)
        posterior = inference.posterior(state)
        results.append(posterior.predict(problem().train.x[:3], Streams(1).noise).probs)
    assert torch.equal(*results)
