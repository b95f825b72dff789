import itertools

import torch
from support.runs.configured import double
from support.small.small_problems import classes, component, real, train

PIECES = (
    component("inference", "mc_dropout", lr=0.01),
    component("model", "mann2", widths=[4], dropout=0.3),
)


def test_predictive_moments_match_all_masks():
    """With 4 hidden units there are 16 masks: mean and variance of f are finite sums."""
    problem = real(n=5, n_tasks=2)
    state, rng = train(*PIECES, problem, 20)
    posterior = component("inference", "mc_dropout", n_predict=20000).posterior(state)
    network = posterior.network
    (w1, b1), (w2, b2) = network.layers(network.theta)
    hidden = torch.relu(problem.test.x @ w1.T + b1)  # [B, 4]
    values = []
    weights = []
    for mask in itertools.product([0.0, 1.0], repeat=4):
        kept = double(mask)
        values.append((hidden * kept / 0.7) @ w2.T + b2)
        weights.append(0.7 ** sum(mask) * 0.3 ** (4 - sum(mask)))
    f = torch.stack(values)
    p = double(weights)[:, None, None]
    mean = (p * f).sum(0)
    variance = (p * (f - mean) ** 2).sum(0)
    fourth = (p * (f - mean) ** 4).sum(0)
    mu = posterior.predict(problem.test.x, rng.evaluation).mu  # [S, B, T]
    n = mu.shape[0]
    assert ((mu.mean(0) - mean).abs() < 4.5 * (variance / n).sqrt() + 1e-12).all()
    assert (
        (mu.var(0) - variance).abs()
        < 4.5 * ((fourth - variance**2).clamp_min(0) / n).sqrt() + 1e-12
    ).all()
    # all the randomness of the predictive is in f and the noise: law of total variance
    predictive = posterior.predict(problem.test.x, rng.evaluation)
    noise = network.log_noise.exp()
    torch.testing.assert_close(predictive.variance, predictive.mu.var(0, correction=0) + noise)


def test_training_draws_only_from_noise_stream():
    problem = classes(batch_size=16)
    torch.manual_seed(0)
    first = train(*PIECES, problem, 10)[0].network.theta
    torch.manual_seed(1)
    assert torch.equal(first, train(*PIECES, problem, 10)[0].network.theta)
    assert not torch.equal(first, train(*PIECES, problem, 10, seed=1)[0].network.theta)


def test_prediction_depends_only_on_its_generator():
    problem = classes()
    state, rng = train(*PIECES, problem, 5)
    posterior = PIECES[0].posterior(state)
    first_draw, same, other = (
        posterior.predict(problem.test.x, rng.at("evaluation", i)).logits for i in (0, 0, 1)
    )
    assert torch.equal(first_draw, same)
    assert not torch.equal(first_draw, other)
    assert first_draw.shape == (100, len(problem.test.x), 1, 3)
