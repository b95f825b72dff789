"""Predictions at the test inputs are computed once for each evaluation, and never cached across
training."""

import torch
from support.small.small_problems import classes

from components.contracts.predictive import Categorical
from components.figures.supervised.calibration import calibration
from runner.execution.rng import Streams


class Posterior:
    """Predicts class probabilities from one parameter, and counts its calls."""

    def __init__(self):
        self.asked = 0
        self.scale = 1.0

    def predict(self, x, generator):
        self.asked += 1
        noise = torch.randn(len(x), generator=generator, dtype=x.dtype)
        logits = torch.stack([torch.zeros_like(noise), self.scale * (x[:, 0] + 0.1 * noise)], -1)
        return Categorical(logits[None, :, None])


def test_scores_and_figures_share_one_prediction():
    problem = classes(n_classes=2)
    posterior = Posterior()
    rng = Streams(0, 0, torch.device("cpu"))
    first = problem.score(posterior, rng)
    calibration(problem, posterior, rng)
    assert posterior.asked == 1
    with torch.no_grad():
        kept = problem.predictive_at(posterior, problem.test.x, rng)
        # equal inputs in another tensor than the test set
        anew = problem.predictive_at(posterior, problem.test.x.clone(), rng)
    assert posterior.asked == 2
    assert torch.equal(kept.probs, anew.probs)
    posterior.scale = -1.0  # the same object, trained in place
    second = problem.score(posterior, rng)
    assert posterior.asked == 3
    assert first["accuracy"] != second["accuracy"]


def test_other_posteriors_streams_and_gradients_miss_the_cache():
    problem = classes(n_classes=2)
    posterior = Posterior()
    rng = Streams(0, 0, torch.device("cpu"))
    problem.score(posterior, rng)
    other = Posterior()
    # with gradients: no prediction that was computed without them
    problem.predictive_at(posterior, problem.test.x, rng)
    with torch.no_grad():
        problem.predictive_at(other, problem.test.x, rng)
        problem.predictive_at(posterior, problem.test.x, Streams(1, 0, torch.device("cpu")))
    assert (posterior.asked, other.asked) == (3, 1)
