"""Stochastic-gradient samplers: minibatches, Langevin noise, repulsion between particles."""
