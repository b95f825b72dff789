"""Equilibria of matrix games, and agents that compute them in each state."""
