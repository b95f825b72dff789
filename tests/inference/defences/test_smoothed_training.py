"""Training under noise: literal steps, the limit of no noise, and larger certificates."""

from smoothed_networks import MLP, check_two_steps, rest, smoothing, train_smoothed
from support.runs.configured import normal
from support.small.small_problems import classes, component, train
from torch.testing import assert_close

from components.evaluation.security.certificate import certify
from components.posteriors.noisy_votes import SmoothedNetwork
from runner.execution.rng import Streams


# training
def test_two_steps_match_equation():
    """θ := θ − η ∇[−mean log p(y|x + η) − log p(θ)/N] with noise from the noise stream."""
    other = Streams(0)

    def fit(network, theta, batch):
        eta = normal(other.noise, batch.x.shape)
        return network.predictive(theta, batch.x + 0.3 * eta).log_prob(batch.y).mean()

    method = smoothing(optimizer="sgd", momentum=0.0, lr=0.1, sigma=0.3)
    check_two_steps(method, classes(batch_size=10), fit)


def test_small_noise_gives_map():
    problem = classes(batch_size=10)
    keys = {"optimizer": "adam", "lr": 0.02}
    plain = train(component("inference", "map", **keys), MLP, problem, 20)[0].network.theta
    noisy = train(smoothing(**keys, sigma=1e-9), MLP, problem, 20)[0].network.theta
    assert_close(noisy, plain, rtol=1e-5, atol=1e-6)


def test_training_noise_certifies_more():
    """With the same noise at prediction, a network trained without noise has smaller radii."""
    problem = classes(n=200, n_inputs=20)
    robust, _ = train_smoothed(problem, 300, sigma=0.5, certificate_draws=1000)
    state, _ = train(component("inference", "map", lr=0.02), MLP, problem, 300)
    fragile = SmoothedNetwork(state.network.requires_grad_(False), **rest(robust))

    def count_certified(posterior):
        rows = [
            certify(problem, posterior, problem.test.y, "l2", eps, Streams(0)).rows.sum()
            for eps in (0.1, 0.3, 0.5)
        ]
        return sum(rows)

    assert count_certified(robust) > count_certified(fragile)
