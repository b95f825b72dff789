"""A small network, and small sizes of an implicit posterior of its weights."""

from support.runs.configured import component
from support.small.small_problems import real

from runner.execution.rng import Streams

NET = component("model", "mlp", widths=[4], activation="leaky_relu", noise_init=0.5, prior_std=0.9)
KEYS = {
    "n_samples": 6,
    "n_predict": 5,
    "noise_dim": 7,
    "generator_widths": [8],
    "discriminator_widths": [8],
}


def begin(name="aadm", seed=3, problem=None, network=NET, **keys):
    """The method, its initial state, the problem and the random numbers."""
    problem = problem or real(n=20)
    rng = Streams(seed)
    inference = component("inference", name, **(KEYS | keys))
    return inference, inference.init(network.build(problem, rng), problem, rng), problem, rng
