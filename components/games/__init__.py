"""Stochastic games: environments, agents, opponents, equilibria."""
