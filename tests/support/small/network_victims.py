"""Network victims: a single network, several networks, and draws of weights."""

from support.runs.configured import component, draw_normal

from components.posteriors.draws import Draws
from components.posteriors.networks import Networks
from components.posteriors.particles import BlockwiseParticles, Particles
from components.posteriors.point_estimate import PointEstimate
from runner.execution.rng import Streams


def build_network(problem, **changes):
    return component("model", "mlp", **({"widths": [6, 1, 5]} | changes)).build(problem, Streams(0))


def build_network_victims(problem, activation="tanh", widths=(6, 1, 5)):
    """A victim of each kind, and the number of rows of x in a block."""
    networks = [
        build_network(problem, activation=activation, widths=list(widths)) for _ in range(2)
    ]
    theta = draw_normal(3, networks[0].dim)
    networks[1].theta.data = theta[2].clone()
    biases = component("model", "mlp", widths=list(widths), activation=activation, biases="point")
    draws = Draws(theta[None], theta[:1], model=networks[0])
    return [
        (PointEstimate(networks[0]), 1),
        (PointEstimate(biases.build(problem, Streams(1))), 1),
        (Networks(tuple(networks)), 1),
        (Particles(networks[0], theta), 1),
        (BlockwiseParticles(networks[0], theta), 3),
        (draws, 1),
    ]
