"""Victims that are networks: one, several and draws of their weights."""

from support.runs.configured import component, draw_normal

from components.posteriors.draws import Draws
from components.posteriors.networks import Networks
from components.posteriors.particles import BlockwiseParticles, Particles
from components.posteriors.point_estimate import PointEstimate
from runner.execution.rng import Streams


def build_network(problem, **changes):
    return component("model", "mlp", **({"widths": [6, 1, 5]} | changes)).build(problem, Streams(0))


def build_network_victims(problem, activation="tanh", widths=(6, 1, 5)):
    """A victim of each kind, and how many rows of x are a block of it."""
    own = [build_network(problem, activation=activation, widths=list(widths)) for _ in range(2)]
    theta = draw_normal(3, own[0].dim)
    own[1].theta.data = theta[2].clone()
    biases = component("model", "mlp", widths=list(widths), activation=activation, biases="point")
    draws = Draws(theta[None], theta[:1], model=own[0])
    return [
        (PointEstimate(own[0]), 1),
        (PointEstimate(biases.build(problem, Streams(1))), 1),
        (Networks(tuple(own)), 1),
        (Particles(own[0], theta), 1),
        (BlockwiseParticles(own[0], theta), 3),
        (draws, 1),
    ]
