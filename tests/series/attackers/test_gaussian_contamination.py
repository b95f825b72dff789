import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.targets.known_targets import z_score


def attack(probability=0.1, sd=100.0, seed=0, **keys):
    problem, rng = load("wiener_velocity", seed, **keys)
    return problem, problem.attack(
        component("attacker", "gaussian_contamination", probability=probability, sd=sd), rng
    )


def test_noise_is_added_to_the_requested_share():
    clean, hit = attack(replicates=50, n_steps=400, probability=0.2, sd=7.0)
    added = hit.observations - clean.observations
    struck = (added != 0).any(-1)
    assert abs(z_score(struck.flatten().double(), 0.2)) < 4
    # corruption affects all coordinates of an observation
    assert ((added != 0).all(-1) == struck).all()
    noise = added[struck]
    assert z_score(noise, 0.0).abs().max() < 4
    assert z_score(noise.square(), 49.0).abs().max() < 4
    assert abs(z_score(noise[:, 0] * noise[:, 1], 0.0)) < 4


def test_mixture_equals_the_law_of_the_corrupted_noise():
    _, hit = attack(probability=0.3, sd=4.0, replicates=100, n_steps=300)
    noise = (hit.observations - hit.states @ hit.system.H.T).flatten(0, 1)
    weights, covariances = hit.attacker.mixture(hit.system.Sigma)
    assert weights.sum() == 1
    second = (weights.view(2, 1, 1) * covariances).sum(0).diagonal()
    assert z_score(noise**2, second).abs().max() < 4
    fourth = (weights.view(2, 1) * 3 * covariances.diagonal(dim1=1, dim2=2) ** 2).sum(0)
    assert z_score(noise**4, fourth).abs().max() < 4


def test_wide_component_includes_the_clean_noise():
    Sigma = double([[0.5, 0.2], [0.2, 0.9]])
    weights, covariances = component(
        "attacker", "gaussian_contamination", probability=0.3, sd=2.0
    ).mixture(Sigma)
    assert weights.tolist() == pytest.approx([0.7, 0.3])
    assert torch.equal(covariances[0], Sigma)
    torch.testing.assert_close(covariances[1], Sigma + 4.0 * torch.eye(2, dtype=F64))
