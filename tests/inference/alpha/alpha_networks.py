"""A network and a mean-field q of its weights, for literal objectives."""

from support.runs.configured import component, normal

from components.inference.gaussian_weights.mean_field import MeanField
from runner.execution.rng import Streams

MLP = component("model", "mlp", widths=[4], activation="tanh", prior_std=0.8)


def make_q(problem, std=0.4, model=MLP):
    rng = Streams(0)
    q = MeanField(model.build(problem, rng), std).requires_grad_(False)
    q.log_std += 0.3 * normal(rng.noise, q.log_std.shape)
    return q
