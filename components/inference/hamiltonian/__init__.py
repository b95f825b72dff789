"""Shared code of the Hamiltonian samplers.

Mass, leapfrog, warm-up, trajectory lengths and trees.
"""
